"""Taking work and keeping it: claims and leases. A lease is void as soon as the task's token has grown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Float,
    FromClause,
    Insert,
    Integer,
    RowMapping,
    Select,
    Text,
    TextClause,
    bindparam,
    func,
    insert,
    literal,
    select,
    update,
)

from board.db.clock import now, read_now
from board.db.many import Compound, among, given, keyed, listed, pack
from board.db.types import UtcTime
from board.tasks import states
from board.tasks.followers import Followed, Moved
from board.tasks.history import TOLD, By, by_parameters, told
from board.tasks.models import READY, SUSPECT, attempts, task_events, tasks
from board.tasks.states import Move, Phase, Pool, Status

# What is known of a task before it is claimed.
CANDIDATE = (
    tasks.c.id,
    tasks.c.status,
    tasks.c.type,
    tasks.c.type_version,
    tasks.c.phase,
    tasks.c.lane,
    tasks.c.rank,
    tasks.c.lease_token,
    tasks.c.limit_key,
    tasks.c.let_in,
)


class Lease(NamedTuple):
    """The right to settle one attempt: void once the task's token has grown."""

    task: int
    token: int


# READY and SUSPECT are the conditions of partial indexes. Where those are not the way, the status is hidden in an
# expression: for a few suspects or ids the database would else walk through an index of all that is ready.
_READY_BUT_NOT_BY_INDEX = func.coalesce(tasks.c.status, "").in_(states.READY) & tasks.c.held_by.is_(None)


# What tells where a waiting task stands: all that `stands_in_line` and the followers of places need.
PLACE = (
    tasks.c.id,
    tasks.c.status,
    tasks.c.phase,
    tasks.c.has_action,
    tasks.c.pool,
    tasks.c.lane,
    tasks.c.rank,
    tasks.c.ready_at,
    tasks.c.unmet_needs,
    tasks.c.suspect,
    tasks.c.held_by,
)
# The present time asked for once, not for each row that is passed over.
_AT_ONCE = select(now()).scalar_subquery()


def in_line(*state: ColumnElement[bool] | TextClause) -> list[Any]:
    """What makes a task wait for a worker, now or from its ready_at on. state: READY, or the same in other words."""
    in_turn = (tasks.c.phase == Phase.WORK) | tasks.c.has_action  # the rest only waits for its grace time
    return [*(state or (READY,)), tasks.c.unmet_needs == 0, in_turn]


def stands_in_line(row: RowMapping) -> bool:
    """The same of a row of `tasks` that was read; one that must run alone stands in no line."""
    in_turn = row["phase"] == Phase.WORK or row["has_action"]
    free = row["held_by"] is None and row["unmet_needs"] == 0 and not row["suspect"]
    return row["status"] in states.READY and free and in_turn


def claimable(pool: Pool, *, suspects: bool = False, by_id: bool = False) -> list[ColumnElement[bool]]:
    """What makes a task ready to be claimed in a pool; suspects: only those that must run alone.

    by_id: the query names its tasks, and is to find them by their ids.
    """
    if suspects:
        state = in_line(SUSPECT, _READY_BUT_NOT_BY_INDEX)
    else:
        state = in_line(_READY_BUT_NOT_BY_INDEX if by_id else READY)
    return [*state, tasks.c.pool == pool, tasks.c.ready_at <= _AT_ONCE]


@lru_cache(maxsize=4)
def _candidates_of(dialect: str, pool: Pool) -> Select[Any]:
    """Made once: making it takes longer than its execution."""
    asked = tasks.c.id.in_(bindparam("ids", expanding=True))
    found = select(*CANDIDATE).where(asked, *claimable(pool, by_id=True), tasks.c.suspect.is_(False))
    return found.with_for_update(skip_locked=True) if dialect == "postgresql" else found


@lru_cache(maxsize=20)
def _candidates(dialect: str, pool: Pool, suspects: bool) -> Select[Any]:
    """Made once: making it takes longer than its execution."""
    found = (
        select(*CANDIDATE)
        .where(*claimable(pool, suspects=suspects), tasks.c.lane == bindparam("from_lane", type_=Integer()))
        .where(tasks.c.suspect.is_(suspects))
        .order_by(tasks.c.rank, tasks.c.ready_at, tasks.c.id)
        .limit(bindparam("most", type_=Integer()))
    )
    return found.with_for_update(skip_locked=True) if dialect == "postgresql" else found


# The status in an expression: SQLite would else look through all that has this status, once for each given row.
_NOW = func.coalesce(tasks.c.status, "")
_CLAIMED = {"id": tasks.c.id, "was": tasks.c.status}
_STARTED = ("task", "number", "phase", "round", "worker", "type_version", "started_at")


@lru_cache(maxsize=2)
def _claiming(dialect: str) -> Compound:
    """Claim the given candidates, each with its event and its attempt; nothing of that passes through Python.

    Each row is found by its primary key: the candidates are locked, so the guard hits them all.
    """
    rows = given(dialect, _CLAIMED)
    moment, worker = bindparam("moment", type_=UtcTime()), bindparam("worker", type_=Text())
    claim = (
        update(tasks)
        .where(keyed(dialect, tasks.c.id, rows), _NOW.in_([Status.PENDING, Status.RETRYING]))
        .values(
            status=Status.RUNNING,
            lease_owner=worker,
            lease_token=tasks.c.lease_token + 1,
            lease_until=bindparam("until", type_=UtcTime()),
            started_at=func.coalesce(tasks.c.started_at, moment),
            version=tasks.c.version + 1,
            event_seq=tasks.c.event_seq + 1,
            updated_at=moment,
        )
    )

    def others(it: FromClause) -> list[Insert]:
        taken = it.join(rows, it.c.id == rows.c.id)
        events = told(it, Move.CLAIM, rows.c.was, literal(Status.RUNNING)).select_from(taken)
        begun = select(it.c.id, it.c.lease_token, it.c.phase, it.c.round, worker, it.c.type_version, moment)
        return [
            insert(task_events).from_select(TOLD, events),
            insert(attempts).from_select(_STARTED, begun.select_from(taken)),
        ]

    return Compound(dialect, claim, tasks.c.id, others)


@lru_cache(maxsize=2)
def _renewing(dialect: str) -> Executable:
    return (
        update(tasks)
        .where(among(dialect, tasks.c.id), tasks.c.status == Status.RUNNING)
        .where(tasks.c.lease_owner == bindparam("worker"))
        .values(lease_until=now(bindparam("seconds", type_=Float())))
        .returning(tasks.c.id, tasks.c.lease_token, tasks.c.cancel_requested)
    )


class Claiming(Followed):
    """The part of the ledger by which workers take tasks."""

    def candidates(
        self,
        tx: Connection,
        *,
        lane: int,
        limit: int,
        suspects: bool = False,
        pool: Pool = Pool.BOARD,
        narrow: Sequence[ColumnElement[bool]] = (),
    ) -> list[RowMapping]:
        """The first ready tasks of one lane, by rank, then oldest first: locked, and not yet claimed.

        Found through the partial index ix_tasks_ready; rows that another worker is just taking are skipped (on SQLite
        writers stand in line anyway). suspects: only tasks that must run alone. narrow: what else must hold.
        """
        found = _candidates(tx.dialect.name, pool, suspects)
        if narrow:
            found = found.where(*narrow)
        return list(tx.execute(found, {"from_lane": lane, "most": limit}).mappings())

    def candidates_of(self, tx: Connection, ids: Sequence[int], *, pool: Pool = Pool.BOARD) -> list[RowMapping]:
        """Of these internal ids those that are ready, in the order given: locked, and not yet claimed.

        The very predicate of `candidates`, without suspects; rows that another worker is just taking are left out.
        """
        found = tx.execute(_candidates_of(tx.dialect.name, pool), {"ids": ids})
        rows = {row["id"]: row for row in found.mappings()}
        return [rows[task] for task in dict.fromkeys(ids) if task in rows]

    def claim(
        self, tx: Connection, found: Sequence[RowMapping], *, worker: str, lease: float, by: By | None = None
    ) -> list[RowMapping]:
        """Claim candidates of this very transaction, in their order, and return the whole task rows.

        lease: seconds. by: who claims, left out the worker of that name.
        """
        if not found:
            return []
        by = by or By("worker", worker, "worker")
        was = {row["id"]: Status(row["status"]) for row in found}
        moment = read_now(tx)
        dialect = tx.dialect.name
        packed = pack(dialect, _CLAIMED, [{"id": task, "was": status} for task, status in was.items()], travel=_CLAIMED)
        until = moment + timedelta(seconds=lease)
        parameters = {"moment": moment, "worker": worker, "until": until} | by_parameters(by)
        claimed = {row["id"]: row for row in _claiming(dialect).run(tx, packed, parameters)}
        taken = [claimed[task] for task in was if task in claimed]
        self._follow_all(tx, [Moved(Move.CLAIM, row, was[row["id"]], by, None, None) for row in taken])
        return taken

    def renew(self, tx: Connection, worker: str, leases: Sequence[Lease], lease: float) -> dict[int, RowMapping]:
        """Heartbeat: prolong all leases of this worker in one statement. What is missing in the answer is lost."""
        dialect = tx.dialect.name
        ids = sorted(item.task for item in leases)  # two who lock many rows lock them in one order
        parameters = listed(dialect, ids) | {"worker": worker, "seconds": lease}
        held = tx.execute(_renewing(dialect), parameters).mappings().all()
        tokens = {item.task: item.token for item in leases}
        return {row["id"]: row for row in held if row["lease_token"] == tokens[row["id"]]}

    def cancelling(self, tx: Connection, lease: Lease) -> bool:
        """Whether this attempt still holds its task and was asked to stop."""
        flags = select(tasks.c.cancel_requested).where(
            tasks.c.id == lease.task, tasks.c.lease_token == lease.token, tasks.c.status == Status.RUNNING
        )
        return bool(tx.execute(flags).scalar())
