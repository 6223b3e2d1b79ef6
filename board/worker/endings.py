"""Writes how many attempts ended in one commit. What does not fit in goes alone, as board.worker.ending says."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sqlalchemy import Connection

from board.catalogue.store import Catalogue
from board.db.engine import Database, is_away
from board.effects import operations
from board.ports import Success
from board.queue import spending
from board.tasks.ledger import Lease, Ledger
from board.tasks.settlements import Settlement
from board.tasks.states import Move
from board.tasks.text import clean
from board.worker.ending import BACK_IN_LINE, STOPPED, Ended, Ending
from board.worker.settle import Decision, decide

log = logging.getLogger(__name__)

_HANDED_BACK = Decision(Move.HAND_BACK, note=STOPPED, attempt={"outcome": "handed_back"})


class Endings:
    """zone: whose days are counted."""

    def __init__(self, db: Database, ledger: Ledger, catalogue: Catalogue, zone: str = "UTC") -> None:
        self._db, self._ledger, self._catalogue, self._zone = db, ledger, catalogue, zone
        self._ending = Ending(db, ledger, catalogue, zone)

    def write(self, ended: Sequence[Ended]) -> list[Exception | None]:
        """Write them all. For each, in their order: None, or the error for which it could not be written.

        A batch that fails is halved and tried again: one that cannot be stored spoils none of its neighbours. When the
        database is away, nothing is tried again.
        """
        if len(ended) == 1:
            return [self._alone(ended[0])]
        try:
            with self._db.write() as tx:
                written = self._write_many(tx, ended)
        except Exception as error:
            if is_away(error):
                return [error] * len(ended)
            log.warning("%d endings are written in smaller parts: %s", len(ended), type(error).__name__)
            half = len(ended) // 2
            return [*self.write(ended[:half]), *self.write(ended[half:])]
        return self._rest(ended, written)

    def _rest(self, ended: Sequence[Ended], written: set[Lease]) -> list[Exception | None]:
        """Alone: the stale, the cancelled, and whose outcome nobody knows."""
        answers: list[Exception | None] = []
        gone: Exception | None = None
        for it in ended:
            error = None if it.lease in written else gone or self._alone(it)
            if error is not None and is_away(error):
                gone = error
            answers.append(error)
        return answers

    def _alone(self, ended: Ended) -> Exception | None:
        try:
            self._ending.write(ended)
        except Exception as error:
            return error
        return None

    def _write_many(self, tx: Connection, ended: Sequence[Ended]) -> set[Lease]:
        decided = {it.lease: (it, self._decide(tx, it)) for it in ended if not it.in_doubt}
        ends = [_settlement(it, made) for it, made in decided.values() if made.move is not Move.ASK_UNKNOWN]
        moved = self._ledger.settle_many(tx, ends, ended[0].by)
        operations.close_many(tx, [_closed(*decided[lease]) for lease in moved if _closes(*decided[lease])])
        operations.log_deliveries(tx, [tried for it in ended if it.lease in moved for tried in it.tries])
        spending.add(tx, [spent for it in ended if it.lease in moved for spent in it.spent(it.outcome)], self._zone)
        return set(moved)

    def _decide(self, tx: Connection, ended: Ended) -> Decision:
        if ended.outcome is None:
            return _HANDED_BACK
        spec = self._catalogue.version(tx, ended.row["type"], ended.row["type_version"]).spec
        return decide(spec, ended.row, ended.outcome, may_resend=ended.may_resend)


def _settlement(ended: Ended, decision: Decision) -> Settlement:
    back = decision.move in BACK_IN_LINE or decision.move is Move.HAND_BACK
    return Settlement(
        ended.lease,
        decision.move,
        changes=decision.changes,
        data=decision.data,
        attempt=decision.attempt,
        note=decision.note,
        details=decision.details or None,
        wait=decision.wait if back else None,
    )


def _closes(ended: Ended, decision: Decision) -> bool:
    return ended.operation is not None and bool(decision.operation)


def _closed(ended: Ended, decision: Decision) -> operations.Closed:
    assert ended.operation is not None
    reference = clean(ended.outcome.reference) if isinstance(ended.outcome, Success) else None
    return operations.Closed(ended.operation, decision.operation, reference, decision.changes["last_error"])
