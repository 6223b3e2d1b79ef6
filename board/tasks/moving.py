"""The statements behind every move: one for a task alone, one for many attempts that end at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, insert, update

from board.db.clock import now
from board.tasks.claiming import Claiming, Lease
from board.tasks.followers import Moved
from board.tasks.history import KINDS, By, event_row, record
from board.tasks.models import task_data, task_events, tasks
from board.tasks.settlements import Settlement, write_all
from board.tasks.states import RULES, IllegalMove, Move, Phase, Status
from board.tasks.written import written


@dataclass(frozen=True, slots=True)
class Change:
    """What a move writes besides the status. columns: of `tasks`; data: columns of `task_data`."""

    by: By
    columns: Mapping[str, Any]
    data: Mapping[str, Any] | None
    note: str | None
    details: Mapping[str, Any] | None


class Moving(Claiming):
    """The part of the ledger by which tasks move, and by which workers end their attempts."""

    def settle(
        self,
        tx: Connection,
        lease: Lease,
        move: Move,
        by: By,
        *,
        changes: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        note: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> Moved | None:
        """End an attempt: a worker's move out of `running`, guarded by the lease token.

        changes, data: further columns of `tasks` and `task_data`. A task whose cancellation was asked can only STOP.
        None: the lease was lost; the stale result is refused and recorded as an event.
        """
        guards = [tasks.c.lease_token == lease.token]
        if move is not Move.STOP:
            guards.append(tasks.c.cancel_requested.is_(False))
        change = Change(by, changes or {}, data, note, details)
        moved = self._move(tx, lease.task, move, Status.RUNNING, guards, change)
        if moved is None and not (move is not Move.STOP and self.cancelling(tx, lease)):
            record(tx, lease.task, "stale_result", by, note=f"A late “{move}” of attempt {lease.token} was refused.")
        return moved

    def settle_many(self, tx: Connection, ends: Sequence[Settlement], by: By) -> dict[Lease, Moved]:
        """End many attempts by the guards of `settle`, in a few statements whatever their number.

        What is missing in the answer was not moved, and nothing was recorded of it: its lease is lost or its
        cancellation was asked. That is for `settle` to find out.
        """
        moved = write_all(tx, ends, by)
        self._follow_all(tx, list(moved.values()))
        return moved

    def _move(
        self,
        tx: Connection,
        task: int,
        move: Move,
        source: Status,
        guards: Sequence[ColumnElement[bool]],
        change: Change,
    ) -> Moved | None:
        rule = RULES[move]
        if source not in rule.sources:
            raise IllegalMove(move, source, Phase.WORK)
        row = (
            tx.execute(
                update(tasks)
                .where(tasks.c.id == task, tasks.c.status == source, tasks.c.phase.in_(list(rule.phases)), *guards)
                .values(written(move, now()) | dict(change.columns))
                .returning(tasks)
            )
            .mappings()
            .first()
        )
        if row is None:
            return None
        if change.data:
            tx.execute(update(task_data).where(task_data.c.task == task).values(**change.data))
        details = None if change.details is None else dict(change.details)
        event = event_row(row, KINDS[move], change.by, moved=(source, rule.to), note=change.note, data=details)
        tx.execute(insert(task_events), [event])
        moved = Moved(move, row, source, change.by, change.note, details)
        self._follow(tx, moved)
        return moved
