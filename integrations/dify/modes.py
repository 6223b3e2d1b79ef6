"""The kinds of Dify apps, as `GET /info` names them, and the handler that each is for."""

from __future__ import annotations

from board.ports import Cause, ErrorClass, Failure

# mode → (its name in Dify's pages, the handler for it)
MODES: dict[str, tuple[str, str]] = {
    "workflow": ("workflow", "dify.workflow"),
    "advanced-chat": ("chatflow", "dify.chat"),
    "chat": ("chatbot", "dify.chat"),
    "agent-chat": ("agent", "dify.chat"),
    "agent": ("agent of the new kind", "dify.chat"),
    "completion": ("text generator", "dify.completion"),
}
ONLY_STREAM = frozenset({"agent-chat", "agent"})  # these refuse blocking calls
RUN_BY_ENGINE = frozenset({"workflow", "advanced-chat"})  # their runs go on without a listener and can be asked about


def misuse(use: str, mode: str) -> str | None:
    """Why a handler cannot use an app of this mode, as a plain sentence; None where it can, or nobody knows."""
    if mode not in MODES or MODES[mode][1] == use:
        return None
    name, handler = MODES[mode]
    return f"The key opens a {name}, which {use} cannot use: write `use: {handler}`, or use the key of another app"


def cannot_block(mode: str) -> Failure | None:
    """The refusal of `wait: blocking` where the app only streams."""
    if mode not in ONLY_STREAM:
        return None
    message = f"Nothing was sent to Dify: a {MODES[mode][0]} only streams. Leave `wait: blocking` out of the task type."
    return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, message, code="wait")
