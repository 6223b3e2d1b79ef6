"""The outbox: callbacks are taken when due, sent, and closed or put off, until they are confirmed or given up."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, func, select, update

from board.db.clock import now
from board.db.engine import Database
from board.effects import signing
from board.effects.callbacks import receiver
from board.effects.http import Doors
from board.effects.models import operations
from board.effects.operations import CALLBACK, close, log_delivery
from board.effects.webhook import TIMEOUT, post, read
from board.ports import Cause, ErrorClass, Failure, Lost, NotSent, Outcome, Refused, Success, UnknownOutcome

# A sender that dies leaves its rows to the next one after this time: longer than any call may take.
TAKEN_SECONDS = TIMEOUT + 30.0
LONGEST_ASKED = 86_400.0  # a receiver that asks for more than a day is asked again after a day
BASE_SECONDS, CAP_SECONDS = 5.0, 3600.0  # the first pause, and the longest; doubled in between
# Calls at the same time to one receiver, and to all of them: a receiver that hangs keeps its own few lines busy only.
PER_RECEIVER, MOST = 8, 100
WINDOW = 100  # due rows looked at in one go


@dataclass(frozen=True, slots=True)
class Outbox:
    db: Database
    secret: str  # signs what goes to a task's callback_url

    def take(self, busy: Mapping[str, int]) -> list[RowMapping]:
        """Due rows, soonest first, marked as being sent; empty when there is nothing to do, or no line free.

        busy: calls under way, by receiver. Rows that another process is just taking are skipped.
        """
        full = [where for where, calls in busy.items() if calls >= PER_RECEIVER]
        free = MOST - sum(busy.values())
        with self.db.write() as tx:
            due = (
                select(operations.c.id, operations.c.target)
                .where(operations.c.next_try_at <= now(), operations.c.kind == CALLBACK)
                .where(*(~operations.c.target.startswith(where, autoescape=True) for where in full))
                .order_by(operations.c.next_try_at, operations.c.id)
                .limit(WINDOW)
            )
            if tx.dialect.name == "postgresql":
                due = due.with_for_update(skip_locked=True)
            picked: list[int] = []
            calls = Counter(busy)
            for row in tx.execute(due):
                where = receiver(row.target)
                if calls[where] < PER_RECEIVER and len(picked) < free:
                    calls[where] += 1
                    picked.append(row.id)
            if not picked:
                return []
            return list(
                tx.execute(
                    update(operations)
                    .where(operations.c.id.in_(picked), operations.c.status.in_(["reserved", "sent"]))
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
            headers = signing.headers(row["key"], body, signing.secrets_of(self.secret))
            answer = await post(doors.common(), row["url"], headers, body)
            status, detail = answer.status, answer.text
            outcome = read(answer, row["target"])
        except (NotSent, Lost) as error:
            outcome, detail = UnknownOutcome(str(error)), str(error)
        except Refused as error:
            outcome, detail = Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error)), str(error)
        milliseconds = int((time.monotonic() - begun) * 1000)
        await asyncio.to_thread(self._close, row, outcome, status, detail, milliseconds)

    def _close(self, row: RowMapping, outcome: Outcome, status: int | None, detail: str, milliseconds: int) -> None:
        with self.db.write() as tx:
            match outcome:
                case Success():
                    word = "confirmed"
                    close(tx, row["id"], "confirmed", external_reference=outcome.reference)
                case Failure() if outcome.error_class is ErrorClass.PERMANENT:
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
        later = max(pause, min(asked or 0.0, LONGEST_ASKED))
        moved = tx.execute(
            update(operations)
            .where(operations.c.id == row["id"], operations.c.give_up_at > now(later))
            .values(next_try_at=now(later), last_error=message)
        )
        if moved.rowcount == 0:
            close(tx, row["id"], "rejected", error=f"Given up after {row['tries']} tries. {message}")
