"""The ends of many attempts, written in one statement on PostgreSQL and in a few on SQLite, whatever their number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    FromClause,
    Insert,
    RowMapping,
    Update,
    bindparam,
    func,
    insert,
    literal,
    or_,
    update,
)

from board.db.clock import read_now
from board.db.many import Compound, given, keyed, pack, values_of
from board.db.types import UtcTime
from board.tasks.claiming import Lease
from board.tasks.followers import Moved
from board.tasks.history import TOLD, By, by_parameters, told
from board.tasks.models import attempts, task_data, task_events, tasks
from board.tasks.states import RULES, IllegalMove, Move, Phase, Status
from board.tasks.written import written


@dataclass(slots=True)  # not frozen: made for every attempt, and that takes a third of the time
class Settlement:
    """How one of many attempts ends.

    changes, data, attempt: values of columns of `tasks`, `task_data` and `attempts`, no expressions. wait: seconds
    until the task is ready again, for a move that puts it back in line.
    """

    lease: Lease
    move: Move
    changes: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    attempt: Mapping[str, Any] = field(default_factory=dict)
    wait: float | None = None
    note: str | None = None
    details: dict[str, Any] | None = None


# What travels, and under which name: which task, and values for columns of four tables.
_KEY: dict[str, Column[Any]] = {"id": tasks.c.id, "lease_token": tasks.c.lease_token}
_CHANGES, _DATA, _ATTEMPT = (
    {column.name: f"{prefix}_{column.name}" for column in table.c}
    for prefix, table in (("task", tasks), ("data", task_data), ("attempt", attempts))
)
_NOTE, _DETAILS = "note", "details"
_RESULT, _OUTPUT = _DATA["result"], _ATTEMPT["output"]
_SHAPE: dict[str, Column[Any]] = {
    **{_CHANGES[column.name]: column for column in tasks.c},
    **{_DATA[column.name]: column for column in task_data.c},
    **{_ATTEMPT[column.name]: column for column in attempts.c},
    _NOTE: task_events.c.note,
    _DETAILS: task_events.c.data,
}


def write_all(tx: Connection, ends: Sequence[Settlement], by: By) -> dict[Lease, Moved]:
    """Make the moves that their guards let through. What is missing in the answer was not moved."""
    moment = read_now(tx)
    alike: dict[tuple[Move, bool, tuple[str, ...]], list[tuple[Settlement, dict[str, Any]]]] = defaultdict(list)
    for end in sorted(ends, key=lambda end: end.lease.task):  # two who lock many rows lock them in one order
        row = _flat(end, moment)
        # What an attempt brought forth is mostly the task's result: then it travels once.
        once = _RESULT in row and row[_RESULT] is row.get(_OUTPUT, _RESULT)
        if once:
            del row[_RESULT]
        alike[end.move, once, tuple(row)].append((end, row))
    moved: dict[Lease, Moved] = {}
    for (move, once, _), group in alike.items():
        found = _write_alike(tx, move, [row for _, row in group], by, moment, result_is_output=once)
        for end, _ in group:
            if (task := found.get(end.lease.task)) is not None:
                moved[end.lease] = Moved(move, task, Status.RUNNING, by, end.note, end.details)
    return moved


def _flat(end: Settlement, moment: datetime) -> dict[str, Any]:
    row: dict[str, Any] = {"id": end.lease.task, "lease_token": end.lease.token, _NOTE: end.note, _DETAILS: end.details}
    row |= {_CHANGES[name]: value for name, value in end.changes.items()}
    if end.wait is not None:
        row[_CHANGES["ready_at"]] = moment + timedelta(seconds=end.wait)
    # What a first attempt leaves empty is empty: before it there was no other.
    if end.lease.token > 1 or any(value is not None for value in end.data.values()):
        row |= {_DATA[name]: value for name, value in end.data.items()}
    return row | {_ATTEMPT[name]: value for name, value in end.attempt.items()}


def _write_alike(
    tx: Connection, move: Move, rows: Sequence[Mapping[str, Any]], by: By, moment: datetime, *, result_is_output: bool
) -> dict[int, RowMapping]:
    """Make one move of many tasks, all of which write the same columns. The moved rows by their id."""
    dialect = tx.dialect.name
    packed = pack(dialect, _KEY | {name: _SHAPE[name] for name in rows[0] if name not in _KEY}, rows, travel=_KEY)
    settling = _settling(dialect, move, tuple(packed.same), packed.differ, result_is_output)
    return {row["id"]: row for row in settling.run(tx, packed, {"moment": moment} | by_parameters(by))}


@lru_cache(maxsize=200)
def _settling(
    dialect: str, move: Move, same: tuple[str, ...], differ: tuple[str, ...], result_is_output: bool
) -> Compound:
    """Each row is found by its primary key, one after another, and guarded as in `Moving.settle`."""
    rule = RULES[move]
    if Status.RUNNING not in rule.sources:
        raise IllegalMove(move, Status.RUNNING, Phase.WORK)
    shape = _KEY | _SHAPE
    rows = given(dialect, {name: shape[name] for name in differ})
    value = values_of(shape, same, differ, rows)
    if result_is_output:
        value[_RESULT] = value[_OUTPUT]
    moment = bindparam("moment", type_=UtcTime())

    def values(names: Mapping[str, str]) -> dict[str, Any]:
        return {column: value[name] for column, name in names.items() if name in value}

    # The status in an expression: SQLite would else look through all that runs, once for each given row.
    running = func.coalesce(tasks.c.status, "") == Status.RUNNING
    guards = [keyed(dialect, tasks.c.id, rows), tasks.c.lease_token == rows.c.lease_token, running]
    guards.append(tasks.c.phase.in_(list(rule.phases)))
    if move is not Move.STOP:
        guards.append(tasks.c.cancel_requested.is_(False))
    settle = update(tasks).where(*guards).values(written(move, moment) | values(_CHANGES))

    def others(it: FromClause) -> list[Insert | Update]:
        this = it.c.id == rows.c.id
        events = told(it, move, literal(Status.RUNNING), literal(rule.to), value[_NOTE], value[_DETAILS])
        made: list[Insert | Update] = [
            insert(task_events).from_select(TOLD, events.where(this)),
            update(attempts)
            .where(this, attempts.c.task == it.c.id, attempts.c.number == it.c.lease_token)
            .values(values(_ATTEMPT) | {"finished_at": moment}),
        ]
        if data := values(_DATA):  # a row that holds just that already is left alone
            differs = or_(*(task_data.c[name].is_distinct_from(it) for name, it in data.items()))
            made.append(update(task_data).where(this, task_data.c.task == it.c.id, differs).values(data))
        return made

    return Compound(dialect, settle, tasks.c.id, others)
