"""The outbox: callbacks are taken when due, sent, and closed or put off, until they are confirmed or given up."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, func, select, update

from board.db.clock import now
from board.db.engine import Database
from board.effects import signing
from board.effects.http import Doors
from board.effects.models import operations
from board.effects.operations import CALLBACK, close, log_delivery
from board.effects.webhook import TIMEOUT, read
from board.ports import Failure, Lost, NotSent, Outcome, Refused, Success, UnknownOutcome

# A sender that dies leaves its rows to the next one after this time: longer than any call may take.
TAKEN_SECONDS = TIMEOUT + 30.0
BASE_SECONDS, CAP_SECONDS = 5.0, 3600.0  # the first pause, and the longest; doubled in between
BATCH = 20


@dataclass(frozen=True, slots=True)
class Outbox:
    db: Database
    secret: str  # signs what goes to a task's callback_url

    def take(self) -> list[RowMapping]:
        """The due rows, soonest first, marked as being sent. Rows that another process is taking are skipped."""
        with self.db.write() as tx:
            due = (
                select(operations.c.id)
                .where(operations.c.next_try_at <= now(), operations.c.kind == CALLBACK)
                .order_by(operations.c.next_try_at)
                .limit(BATCH)
            )
            if tx.dialect.name == "postgresql":
                due = due.with_for_update(skip_locked=True)
            ids = list(tx.execute(due).scalars())
            if not ids:
                return []
            return list(
                tx.execute(
                    update(operations)
                    .where(operations.c.id.in_(ids), operations.c.status.in_(["reserved", "sent"]))
                    .values(
                        status="sent",
                        tries=operations.c.tries + 1,
                        sent_at=func.coalesce(operations.c.sent_at, now()),
                        next_try_at=now(TAKEN_SECONDS),
                    )
                    .returning(operations)
                ).mappings()
            )

    async def send(self, row: RowMapping, doors: Doors) -> None:
        """One try of one row, and what follows from it. The id stays, time and signature are fresh."""
        body = str(row["body"]).encode()
        begun = time.monotonic()
        outcome: Outcome
        status: int | None = None
        detail = ""
        try:
            answer = await doors.common().request(
                "POST",
                row["url"],
                headers=signing.headers(row["key"], body, self.secret),
                content=body,
                timeout=TIMEOUT,
            )
            status, detail = answer.status, answer.text
            outcome = read(answer, row["target"])
        except (NotSent, Lost, Refused) as error:
            outcome, detail = UnknownOutcome(str(error)), str(error)
        milliseconds = int((time.monotonic() - begun) * 1000)
        await asyncio.to_thread(self._close, row, outcome, status, detail, milliseconds)

    def _close(self, row: RowMapping, outcome: Outcome, status: int | None, detail: str, milliseconds: int) -> None:
        with self.db.write() as tx:
            match outcome:
                case Success():
                    word = "confirmed"
                    close(tx, row["id"], "confirmed", external_reference=outcome.reference)
                case Failure() if status is not None and status not in (429, 503):
                    word = "rejected"
                    close(tx, row["id"], "rejected", error=outcome.message)
                case _:
                    # At least once: what may or may not have arrived goes again under the same webhook-id.
                    word = "transient" if isinstance(outcome, Failure) else "unknown"
                    asked = outcome.retry_after if isinstance(outcome, Failure) else None
                    self._put_off(tx, row, outcome.message, asked)
            log_delivery(tx, row["id"], milliseconds=milliseconds, http_status=status, outcome=word, detail=detail)

    @staticmethod
    def _put_off(tx: Connection, row: RowMapping, message: str, asked: float | None) -> None:
        pause = min(CAP_SECONDS, BASE_SECONDS * 2 ** min(row["tries"] - 1, 20)) * random.uniform(0.8, 1.2)  # noqa: S311
        later = max(pause, asked or 0.0)
        moved = tx.execute(
            update(operations)
            .where(operations.c.id == row["id"], operations.c.give_up_at > now(later))
            .values(next_try_at=now(later), last_error=message)
        )
        if moved.rowcount == 0:
            close(tx, row["id"], "rejected", error=f"Given up after {row['tries']} tries. {message}")
