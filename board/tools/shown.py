"""Tasks as an agent gets to see them: small objects whose last word says what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from board.db.types import dump_json
from board.tasks.states import Status
from board.tasks.view import time

# A model reads every character of an answer, and Dify keeps 200 KB of it at most.
LONGEST_RESULT = 20_000
LONGEST_TEXT = 1000

_NEXT: dict[str, str] = {
    Status.PENDING: "It waits for its turn. Call get_task again later, or with wait_seconds.",
    Status.RUNNING: "It is being worked on. Call get_task again later, or with wait_seconds.",
    Status.RETRYING: "It failed and is tried again by itself. Call get_task again later.",
    Status.NEEDS_REVIEW: "A person has to decide about it. Call get_decision to learn what was decided.",
    Status.DONE: "It is finished; nothing is left to do.",
    Status.FAILED: "It failed for good; a person has to look at it.",
    Status.CANCELLED: "It was cancelled or rejected; do not repeat it without a new order.",
}


def brief(task: dict[str, Any]) -> dict[str, Any]:
    """A line of a list. task: a task object of the API."""
    return {
        "task_id": task["task_id"],
        "type": task["type"],
        "title": task["title"][:LONGEST_TEXT],
        "status": task["status"],
        "priority": task["priority"],
        "created_at": task["created_at"],
        "url": task["links"]["ui"],
    }


def whole(task: dict[str, Any], notes: Sequence[Any] = ()) -> dict[str, Any]:
    """All that an agent needs of one task. What is empty is left out. notes: rows of its events."""
    judged = {name: value for name, value in task["judgement"].items() if value not in (None, [], "")}
    waits = task["waiting_for"]
    more = {
        "result": task["result"],
        "judgement": judged,
        "last_error": (task["last_error"] or "")[:LONGEST_TEXT],
        "waiting_for": waits["message"] if waits else None,
        "notes": [{"at": time(it["at"]), "by": it["actor_name"], "note": it["note"][:LONGEST_TEXT]} for it in notes],
        "finished_at": task["finished_at"],
    }
    shown = brief(task) | {name: value for name, value in more.items() if value not in (None, {}, [], "")}
    for name in ("result", "judgement"):
        if name in shown and len(dump_json(shown[name])) > LONGEST_RESULT:
            shown[name] = f"Too long to be shown here ({len(dump_json(shown[name]))} characters). It stands at the url."
    return shown | {"message": what_next(task["status"])}


def what_next(status: str) -> str:
    return _NEXT[status]
