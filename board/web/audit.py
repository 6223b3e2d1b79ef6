"""Who did what with a task, and by which way: for whoever decides next, and for whoever asks later."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from board.effects import shown
from board.review import read as reviews
from board.tasks import history
from board.tasks.read import attempt_document, attempts_of
from board.tasks.view import event_document
from board.tasks.visible import visible
from board.web.difference import Change, changes
from board.web.routing import PageRouter
from board.web.visit import TheReader

router = PageRouter()

# What the machinery does by itself, time and again: folded, so that what people and results did stands out.
_NOISE = {
    *("started", "handed_back", "lease_lost", "retry_planned", "reconcile_planned", "aged", "hurried", "run_now"),
    *("duplicate", "stale_result", "callback_late", "callback_resent", "called_back"),
    *("link_opened",),
}


@dataclass(slots=True)
class Entry:
    """One event. content_hash, version: of the review that it decided. changed: what an edit made of the payload."""

    event: dict[str, Any]
    content_hash: str | None = None
    version: int | None = None
    reason_class: str | None = None
    changed: list[Change] = field(default_factory=list)
    policy: dict[str, Any] | None = None  # the rules under which it was decided


@dataclass(slots=True)
class Stretch:
    """Events one after the other that are all noise, or all not."""

    noise: bool
    entries: list[Entry]


def panel(connection: Any, task: int, visits: Sequence[Any]) -> list[Stretch]:
    """The whole history, the latest first. visits: the task's reviews."""
    hashes = {str(row["id"]): row["content_hash"] for row in visits}
    entries = [_entry(event_document(row), hashes) for row in reversed(history.events_of(connection, task))]
    stretches = groupby(entries, key=lambda entry: entry.event["kind"] in _NOISE)
    return [Stretch(noise, list(members)) for noise, members in stretches]


def _entry(event: dict[str, Any], hashes: dict[str, str]) -> Entry:
    data = event["data"] if isinstance(event["data"], dict) else {}
    entry = Entry(event, hashes.get(str(data.get("review"))), reason_class=data.get("reason_class"))
    if isinstance(data.get("version"), int):
        entry.version = data["version"]
    if isinstance(policy := data.get("policy"), dict):
        entry.policy = policy
    if isinstance(edits := data.get("edits"), dict):
        before, after = ({name: it.get(side) for name, it in edits.items()} for side in ("from", "to"))
        entry.changed = changes(before, after)
    payload = data.get("payload") if event["kind"] == "edited" else None
    if isinstance(payload, dict) and {"from", "to"} <= payload.keys():
        entry.changed = changes(payload["from"], payload["to"])
    return entry


@router.show("/tasks/{task_id}/audit.json")
def export(task_id: str, visit: TheReader) -> Response:
    """All that is known of how a task went: events, reviews with their decisions, attempts, calls outside."""
    with visit.board.db.read() as connection:
        row = visible(connection, visit.actor, task_id)
        whole = {
            "task_id": row["task_id"],
            "events": [event_document(item) for item in history.events_of(connection, row["id"])],
            "reviews": [reviews.record(item) for item in reviews.of_task(connection, row["id"])],
            "attempts": [attempt_document(item) for item in attempts_of(connection, row["id"])],
            "operations": shown.of_task(connection, row["id"]),
        }
    name = f"{quote(row['task_id'], safe='')}-audit.json"
    return Response(
        json.dumps(whole, ensure_ascii=False, indent=2, default=str),
        media_type="application/json",
        headers={"Content-Disposition": f"attachment; filename*=UTF-8''{name}"},
    )
