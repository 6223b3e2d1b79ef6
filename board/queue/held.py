"""Tasks that a limit holds out of line: found, put there, and let in again in the order in which they waited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    func,
    select,
    union_all,
    update,
)

from board.db.clock import now
from board.tasks import states
from board.tasks.claiming import CANDIDATE, PLACE
from board.tasks.models import HELD, LET_IN, READY, RUNNING, tasks

SELECTS = 100  # in one statement; SQLite takes 500


def scopes(connection: Connection) -> list[str]:
    """Every limit that holds a task back, one after another through ix_tasks_held: as many looks into the index as
    there are limits, however many tasks they hold. Normally there is none, which is a single look."""
    found = select(_next().scalar_subquery().label("scope")).cte("found", recursive=True)
    further = _next().where(tasks.c.held_by > found.c.scope).correlate(found).scalar_subquery()
    found = found.union_all(select(further).where(found.c.scope.is_not(None)))
    return list(connection.execute(select(found.c.scope).where(found.c.scope.is_not(None))).scalars())


def any_at_all() -> ColumnElement[bool]:
    """Whether any limit holds a task back."""
    return select(tasks.c.id).where(HELD).exists()


def _first_of(scope: str) -> Select[tuple[str, int, int]]:
    """In the order of ix_tasks_held: of a limit that holds much, PostgreSQL would else look for one row in the table
    itself, and walk through all that has ended first."""
    query = select(tasks.c.held_by, tasks.c.lane, tasks.c.rank).where(HELD, tasks.c.held_by == scope)
    return query.order_by(tasks.c.lane, tasks.c.rank, tasks.c.ready_at, tasks.c.id).limit(1)


def _next() -> Select[tuple[str]]:
    return select(tasks.c.held_by).where(HELD).order_by(tasks.c.held_by).limit(1)


def holding(connection: Connection, among: Collection[str]) -> dict[str, tuple[int, int]]:
    """Which of these limits hold any task back, with lane and rank of the first."""
    names, found = sorted(among), dict[str, tuple[int, int]]()
    for some in (names[begin : begin + SELECTS] for begin in range(0, len(names), SELECTS)):
        each = [select(_first_of(name).subquery()) for name in some]
        found |= {name: (lane, rank) for name, lane, rank in connection.execute(union_all(*each))}
    return found


def places(connection: Connection, scope: str, most: int) -> dict[int, int]:
    """How many a limit lets in before each of the first `most` that it holds back, by internal id. Through
    ix_tasks_held, as in `let_in`."""
    query = select(tasks.c.id).where(HELD, tasks.c.held_by == scope, tasks.c.ready_at <= now())
    query = query.order_by(tasks.c.lane, tasks.c.rank, tasks.c.ready_at, tasks.c.id).limit(most)
    return {task: place for place, task in enumerate(connection.execute(query).scalars())}


def let_in_already(connection: Connection, among: Sequence[ColumnElement[bool]]) -> dict[str, int]:
    """How many each limit has let in that are not claimed yet. among: what the asking claimer could take."""
    waiting = func.coalesce(tasks.c.status, "").in_(
        states.READY
    )  # in an expression: see board.tasks.claiming.claimable
    query = select(tasks.c.let_in, func.count()).where(LET_IN, waiting, *among).group_by(tasks.c.let_in)
    return {str(scope): int(number) for scope, number in connection.execute(query)}


def running(connection: Connection) -> Sequence[RowMapping]:
    """What runs, by all that decides under which limits it does. Rows that run are the slots: nothing else has to be
    kept, given back, or cleaned up after a crash. Counted here: to group them, SQLite would walk through all tasks."""
    query = select(tasks.c.type, tasks.c.type_version, tasks.c.phase, tasks.c.limit_key).where(RUNNING)
    return connection.execute(query).mappings().all()


def head(
    tx: Connection, lane: int, claimable: Sequence[ColumnElement[bool]], without: Collection[int], limit: int
) -> Sequence[RowMapping]:
    """The first in a lane, not locked. without: internal ids to be left out."""
    query = select(*CANDIDATE).where(tasks.c.lane == lane, *claimable, tasks.c.suspect.is_(False))
    query = query.where(tasks.c.id.not_in(without)) if without else query
    return tx.execute(query.order_by(tasks.c.rank, tasks.c.ready_at, tasks.c.id).limit(limit)).mappings().all()


def hold(tx: Connection, refused: Mapping[int, str]) -> list[RowMapping]:
    """Take tasks out of line, each held by the limit named. What others are just writing stays where it is."""
    taken: list[RowMapping] = []
    by_scope: dict[str, list[int]] = defaultdict(list)
    for task in _locked(tx, select(tasks.c.id).where(tasks.c.id.in_(refused), READY)):
        by_scope[refused[task]].append(task)
    for scope, ids in by_scope.items():
        statement = update(tasks).where(tasks.c.id.in_(ids)).values(held_by=scope, let_in=None)
        taken += tx.execute(statement.returning(*PLACE)).mappings().all()
    return taken


def let_in(tx: Connection, scope: str, most: int, among: Sequence[ColumnElement[bool]]) -> Sequence[RowMapping]:
    """Put the first `most` that a limit holds back in line. among: what the asking claimer could take."""
    first = (
        select(tasks.c.id)
        .where(HELD, tasks.c.held_by == scope, tasks.c.ready_at <= now(), *among)
        .order_by(tasks.c.lane, tasks.c.rank, tasks.c.ready_at, tasks.c.id)
        .limit(most)
    )
    ids = _locked(tx, first)
    if not ids:
        return []
    statement = update(tasks).where(tasks.c.id.in_(ids)).values(held_by=None, let_in=scope)
    return tx.execute(statement.returning(*PLACE)).mappings().all()


def _locked(tx: Connection, query: Select[Any]) -> list[int]:
    """The ids found, locked; what others are just writing is left out."""
    if tx.dialect.name == "postgresql":
        query = query.with_for_update(skip_locked=True)
    return list(tx.execute(query).scalars())
