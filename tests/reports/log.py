"""A log written by hand: tasks with just the events, attempts and reviews that a test names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from board.review.models import openings, reviews
from board.tasks.models import attempts, task_events, tasks
from tests.heart import new_task

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)  # the first day of 2026-W47
HOUR, DAY = 3600.0, 86_400.0


def at(day: float, hour: float = 0.0, seconds: float = 0.0) -> datetime:
    """day: 0 is the Monday of 2026-W47, 7 that of W48."""
    return MONDAY + timedelta(days=day, hours=hour, seconds=seconds)


class Story:
    """One task, told move by move."""

    def __init__(self, tx: Connection, task_id: str, moment: datetime, kind: str = "letters", **columns: Any) -> None:
        self._tx, self._seq, self.status, self._attempt = tx, 0, "pending", 0
        row = new_task(task_id, type=kind) | {"phase": "work", "pool": "board", "home_pool": "board", "lane": 2}
        row |= {"status": "pending", "lease_token": 0, "lane_since": moment, "ready_at": moment, "created_at": moment}
        row |= {"updated_at": moment} | columns
        del row["data"]
        self.id: int = tx.execute(insert(tasks).values(row).returning(tasks.c.id)).scalar_one()
        self._event("created", moment, None, "pending", ("key", "n8n"), None)

    def _event(
        self, kind: str, moment: datetime, source: str | None, to: str | None, actor: tuple[str, str], data: Any
    ) -> None:
        self._seq += 1
        values = {"task": self.id, "seq": self._seq, "at": moment, "kind": kind, "from_status": source}
        values |= {"to_status": to, "actor_kind": actor[0], "actor_name": actor[1], "channel": "worker", "data": data}
        self._tx.execute(insert(task_events).values(values | {"attempt": self._attempt or None}))
        if to is not None:
            self.status = to
            self._tx.execute(update(tasks).where(tasks.c.id == self.id).values(status=to, event_seq=self._seq))

    def note(self, kind: str, moment: datetime, actor: str = "timer", **data: Any) -> Story:
        """An event that changes no status."""
        self._event(kind, moment, None, None, (actor, actor), data or None)
        return self

    def start(self, moment: datetime) -> Story:
        self._attempt += 1
        self._event("started", moment, self.status, "running", ("worker", "w1"), None)
        values = {"task": self.id, "number": self._attempt, "phase": "work", "round": 1, "worker": "w1"}
        self._tx.execute(insert(attempts).values(values | {"type_version": 1, "started_at": moment}))
        return self

    def end(self, kind: str, to: str, moment: datetime, attempt: dict[str, Any] | None = None, **data: Any) -> Story:
        """A move out of running. attempt: columns of the attempt."""
        self._event(kind, moment, "running", to, ("worker", "w1"), data or None)
        mine = (attempts.c.task == self.id) & (attempts.c.number == self._attempt)
        self._tx.execute(update(attempts).where(mine).values({"finished_at": moment} | (attempt or {})))
        return self

    def ask(
        self, moment: datetime, reason: str = "policy", due: datetime | None = None, proposed: str | None = None
    ) -> Story:
        kind = "outcome_unknown" if reason == "unknown_outcome" else "review_asked"
        self.end(kind, "needs_review", moment, reason=reason)
        values = {"task": self.id, "reason": reason, "content_hash": "0" * 64, "opened_at": moment, "due_at": due}
        values |= {"proposed": proposed}
        self._review = self._tx.execute(insert(reviews).values(values | {"status": "open"}).returning(reviews.c.id))
        self.review = self._review.scalar_one()
        return self

    def decide(
        self, kind: str, to: str, moment: datetime, who: str = "li@example.org", by: str = "person", **data: Any
    ) -> Story:
        """A move out of needs_review."""
        self._event(kind, moment, "needs_review", to, (by, who), {"review": str(self.review)} | data)
        mine = update(reviews).where(reviews.c.id == self.review)
        self._tx.execute(mine.values(status="decided", decided_at=moment, edited="edits" in data))
        return self

    def opened(self, moment: datetime, who: str = "li@example.org") -> Story:
        values = {"review": self.review, "person": f"user:{who}", "opened_at": moment, "seen_at": moment}
        self._tx.execute(insert(openings).values(values))
        return self

    def move(self, kind: str, to: str, moment: datetime, actor: str = "timer") -> Story:
        self._event(kind, moment, self.status, to, (actor, actor), None)
        if kind == "decision_undone":
            self._tx.execute(
                update(reviews).where(reviews.c.id == self.review).values(status="open", decided_at=None, verdict=None)
            )
        return self


def events(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(task_events)).scalar_one()
