"""How the result of a type's work is waited for: `handler.wait`, or what its handler does by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from board.catalogue.spec import TypeSpec
from board.ports import Handler, Wait

USUAL: tuple[Wait, ...] = ("stream",)  # of a handler that says nothing


def waits_of(handler: Handler) -> Sequence[Wait]:
    """The ways that a handler knows, its own default first."""
    return getattr(handler, "waits", USUAL)


def wait_of(handlers: Mapping[str, Handler], spec: TypeSpec) -> Wait:
    handler = handlers.get(spec.handler.use)
    return spec.handler.wait or (waits_of(handler)[0] if handler else USUAL[0])


def is_called_back(handlers: Mapping[str, Handler], spec: TypeSpec) -> bool:
    return wait_of(handlers, spec) == "callback"
