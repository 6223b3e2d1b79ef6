"""Word to the caller: an outbox row for a task's `callback_url`, written in the transaction of the move itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, RowMapping, insert

from board.catalogue.store import Catalogue
from board.db.clock import now
from board.db.types import dump_json
from board.effects.models import operations
from board.effects.operations import CALLBACK, request_hash
from board.tasks.ledger import Moved
from board.tasks.states import Status
from board.tasks.view import time

# A receiver that is down over a weekend still gets its word; after that somebody has noticed.
GIVE_UP_AFTER = 3 * 86400.0

Documents = Callable[[Connection, RowMapping], dict[str, Any]]


class Callbacks:
    """A follower of the ledger. documents: makes the task object of the contract."""

    def __init__(self, catalogue: Catalogue, documents: Documents) -> None:
        self._catalogue = catalogue
        self._documents = documents

    def __call__(self, tx: Connection, moved: Moved) -> None:
        task = moved.task
        url = task["callback_url"]
        if not url or not (moved.closes or moved.status is Status.NEEDS_REVIEW) or moved.source is moved.status:
            return
        spec = self._catalogue.version(tx, task["type"], task["type_version"]).spec
        if moved.status not in spec.callback.events:
            return
        document = self._documents(tx, task)
        body = envelope(f"task.{moved.status}", task["event_seq"], document, time(task["updated_at"]))
        wait = float((moved.data or {}).get("leaves_in", 0.0))  # a rejection can be undone for a while
        tx.execute(
            insert(operations).values(
                key=f"callback:{task['task_id']}:{task['event_seq']}",
                task=task["id"],
                task_id=task["task_id"],
                phase=task["phase"],
                lease_token=task["lease_token"],
                kind=CALLBACK,
                target=masked(url),
                url=url,
                request_hash=request_hash(body),
                body=body.decode(),
                status="reserved",
                tries=0,
                next_try_at=now(wait),
                give_up_at=now(wait + GIVE_UP_AFTER),
                created_at=now(),
            )
        )


def envelope(event: str, seq: int, task: dict[str, Any], at: str | None) -> bytes:
    """The body of every outgoing webhook. `seq` grows per task: a receiver drops what is older than it has seen."""
    return dump_json({"event": event, "seq": seq, "task": task, "decision": task.get("decision"), "at": at}).encode()


def masked(url: str) -> str:
    """An address for people: resume addresses carry their secret in the query, so that is left out."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path or '/'}" + (
        "?…" if parts.query else ""
    )


def receiver(target: str) -> str:
    """Scheme, host and port of a masked address, with the slash after it: whom one call may hold up."""
    return "/".join(target.split("/", 3)[:3]) + "/"
