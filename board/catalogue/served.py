"""Which parts of the format are served by this release. What is not is refused by name, never silently ignored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from board import templating
from board.catalogue.connection_spec import ConnectionSpec
from board.catalogue.spec import TypeSpec
from board.catalogue.waits import is_called_back, waits_of
from board.effects.guard import check_never
from board.ports import Handler, Refused

# Decisions can be undone for minutes, and callers ask for a while what became of their task.
SHORTEST_RETENTION = 3600.0
Problem = tuple[str, str]  # path of the field, plain sentence

_LATER = "not yet supported"


def problems_of_type(spec: TypeSpec, handlers: Mapping[str, Handler], connections: Mapping[str, str]) -> list[Problem]:
    """What keeps a type from being used here. handlers: by name; connections: kind by name."""
    return [
        *_handler(spec, handlers, connections),
        *_action(spec, handlers, connections),
        *_values(spec),
        *_later(spec),
    ]


def problems_of_connection(spec: ConnectionSpec) -> list[Problem]:
    try:
        check_never(spec.url)
    except Refused as error:
        return [("url", str(error))]
    return []


def _handler(spec: TypeSpec, handlers: Mapping[str, Handler], connections: Mapping[str, str]) -> Iterator[Problem]:
    block = spec.handler
    handler = handlers.get(block.use)
    if handler is None or "work" not in getattr(handler, "phases", ("work",)):
        names = sorted(name for name, it in handlers.items() if "work" in getattr(it, "phases", ("work",)))
        yield "handler.use", f"“{block.use}” is not a handler of this board; there are: {', '.join(names)}"
        return
    yield from _connection("handler.connection", block.connection, handler, connections)
    for name in block.options:
        if name not in getattr(handler, "options", ()):
            yield f"handler.{name}", f"is not an option of {block.use}"
    if block.wait is not None and block.wait not in waits_of(handler):
        yield "handler.wait", f"{block.use} cannot wait like that; it knows: {', '.join(waits_of(handler))}"
    if not is_called_back(handlers, spec) and "callback" in templating.unknown_names(block.inputs, frozenset()):
        yield "handler.inputs", "callback.url is there only with `wait: callback`"
    for path, message in handler.check(block.model_dump()):
        yield f"handler.{path}" if path else "handler", message


def _action(spec: TypeSpec, handlers: Mapping[str, Handler], connections: Mapping[str, str]) -> Iterator[Problem]:
    if spec.action is None:
        return
    handler = handlers.get(spec.action.use)
    if handler is None or "act" not in getattr(handler, "phases", ()):
        names = sorted(name for name, it in handlers.items() if "act" in getattr(it, "phases", ()))
        yield (
            "action.use",
            _LATER if handler is not None else f"“{spec.action.use}” is not an action; there are: {', '.join(names)}",
        )
        return
    yield from _connection("action.connection", spec.action.connection, handler, connections)
    for name in spec.action.options:
        if name not in getattr(handler, "options", ()):
            yield f"action.{name}", f"is not an option of {spec.action.use}"
    for path, message in handler.check(spec.action.model_dump()):
        yield f"action.{path}" if path else "action", message


def _connection(path: str, name: str | None, handler: Handler, connections: Mapping[str, str]) -> Iterator[Problem]:
    if name is None and getattr(handler, "connection_optional", False):
        return
    if handler.connection_kind is None:
        if name is not None:
            yield path, f"{handler.name} needs no connection"
    elif name is None:
        yield path, f"is missing: {handler.name} needs a connection of kind {handler.connection_kind}"
    elif name not in connections:
        yield path, f"“{name}” does not exist; make it with `board connections set` or in the same file"
    elif connections[name] != handler.connection_kind:
        yield path, f"“{name}” is of kind {connections[name]}, {handler.name} needs {handler.connection_kind}"


def _values(spec: TypeSpec) -> Iterator[Problem]:
    """What no single field shows. Checked here and not in the format: types that are stored already stay readable."""
    if spec.retention is not None and spec.retention < SHORTEST_RETENTION:
        yield "retention", "must be at least 1h, or forever"
    if spec.retry.base > spec.retry.cap:
        yield "retry.base", f"{spec.retry.base:g}s is longer than retry.cap, the longest pause ({spec.retry.cap:g}s)"
    for path, value, known in _templates(spec):
        for name in templating.unknown_names(value, known):
            yield path, f"“{name}” is not known to this template; there are: {', '.join(sorted(known))}"


def _templates(spec: TypeSpec) -> Iterator[tuple[str, Any, frozenset[str]]]:
    """(path, value, the names that it may use) of everything in a type that holds templates."""
    yield "task_id", spec.task_id, templating.OF_BODY
    of_body = templating.OF_BODY - {"priority"} | {"task_id"}
    if isinstance(spec.priority, str):
        yield "priority", spec.priority, of_body
    else:
        for index, rule in enumerate(spec.priority):
            yield f"priority[{index}].when", f"{{{{ {rule.when} }}}}" if rule.when else None, of_body
    yield "handler.inputs", spec.handler.inputs, templating.OF_TASK
    yield "limits.concurrency_key", spec.limits.concurrency_key, templating.OF_BODY | {"task_id"}
    yield "review.risk", spec.review.risk, templating.OF_TASK
    if spec.action is not None:
        yield "action.operation_key", spec.action.operation_key, templating.OF_TASK
        yield "action.inputs", spec.action.inputs, templating.OF_TASK


def doubts(spec: TypeSpec) -> list[str]:
    """What is allowed and yet hardly meant, as plain sentences."""
    found: list[str] = []
    if spec.review.when == "rules" and not spec.review.rules:
        found.append(f"The type {spec.name} says `review: {{when: rules}}` and has no rules, so nobody is asked by it.")
    if spec.resumes and "needs_review" in spec.callback.events:
        found.append(
            f"The type {spec.name} tells `needs_review` to the flow that waits, which goes on by that already."
        )
    return found


def _later(spec: TypeSpec) -> Iterator[Problem]:
    default = TypeSpec.model_validate({"name": spec.name, "handler": {"use": "echo"}})
    if spec.fields != default.fields:
        yield "fields", _LATER
