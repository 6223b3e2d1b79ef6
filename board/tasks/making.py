"""New tasks: many, with their data and their first event, in one statement on PostgreSQL and in a few on SQLite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import Column, Connection, FromClause, Insert, RowMapping, insert, literal, null, select
from sqlalchemy.dialects import postgresql, sqlite

from board.db.clock import read_now
from board.db.many import Compound, given, pack, values_of
from board.tasks.history import TOLD, By, by_parameters, told
from board.tasks.models import task_data, task_events, tasks
from board.tasks.states import RANK_USUAL, RULES, Move, Phase, Pool

# What a caller may leave out.
_LEFT_OUT: dict[str, Any] = {"home_pool": Pool.BOARD, "rank": RANK_USUAL, "deadline_at": None, "limit_key": None}
# What every new row starts with. Written out because Core inserts do not see the model's defaults.
_FRESH: dict[str, Any] = {
    "status": RULES[Move.CREATE].to,
    "phase": Phase.WORK,
    "event_seq": 1,
    "has_action": False,
    "unmet_needs": 0,
    "lease_token": 0,
    "cancel_requested": False,
    "retry_count": 0,
    "crash_count": 0,
    "suspect": False,
    "deadline_missed": False,
    "round": 1,
    "version": 1,
}
_DATA = {name: f"data_{name}" for name in ("payload", "payload_hash", "origin", "note")}
_SHAPE: dict[str, Column[Any]] = {
    **{column.name: column for column in tasks.c},
    **{place: task_data.c[name] for name, place in _DATA.items()},
}


def write_new(tx: Connection, new: Sequence[Mapping[str, Any]], by: By) -> Sequence[RowMapping]:
    """Insert tasks whose IDs are not taken; the rows that were made. As board.tasks.ledger.Ledger.create says."""
    moment = read_now(tx)
    first = {item["task_id"]: item for item in reversed(new)}  # of twins in one call the first counts
    rows = [_row(item, moment) for item in reversed(first.values())]
    dialect = tx.dialect.name
    packed = pack(dialect, {name: _SHAPE[name] for name in rows[0]}, rows, travel=["task_id"])
    making = _making(dialect, tuple(packed.same), packed.differ)
    return making.run(tx, packed, {"moment": moment} | by_parameters(by))


def _row(item: Mapping[str, Any], moment: datetime) -> dict[str, Any]:
    row = {
        **_LEFT_OUT,
        **item,
        "lane": item["priority"],
        "pool": item.get("home_pool", Pool.BOARD),
        "lane_since": moment,
        "ready_at": _ready_at(moment, item),
        "hurry_at": _hurry_at(moment, item.get("deadline_at")),
        "created_at": moment,
        "updated_at": moment,
        **_FRESH,
    }
    row.pop("ahead", None)
    return row | {_DATA[name]: value for name, value in row.pop("data").items()}


@lru_cache(maxsize=200)
def _making(dialect: str, same: tuple[str, ...], differ: tuple[str, ...]) -> Compound:
    rows = given(dialect, {name: _SHAPE[name] for name in differ})
    value = values_of(_SHAPE, same, differ, rows)
    names = [column.name for column in tasks.c if column.name in value]
    # WHERE: without one, SQLite takes ON CONFLICT for the condition of a join.
    source = select(*(value[name].label(name) for name in names)).select_from(rows).where(literal(1) == 1)
    made = sqlite.insert(tasks) if dialect == "sqlite" else postgresql.insert(tasks)
    make = made.from_select(names, source, include_defaults=False).on_conflict_do_nothing(index_elements=["task_id"])

    def others(it: FromClause) -> list[Insert]:
        this = it.join(rows, it.c.task_id == rows.c.task_id)
        data = select(it.c.id, *(value[place] for place in _DATA.values())).select_from(this)
        events = told(it, Move.CREATE, null(), literal(_FRESH["status"])).select_from(this)
        return [
            insert(task_data).from_select(["task", *_DATA], data),
            insert(task_events).from_select(TOLD, events),
        ]

    return Compound(dialect, make, tasks.c.task_id, others)


def _ready_at(moment: datetime, item: Mapping[str, Any]) -> datetime:
    """When it is ready: its place in line."""
    later: datetime = item.get("run_after") or moment
    return later if later > moment else moment - timedelta(seconds=item.get("ahead", 0.0))


def _hurry_at(begin: datetime, deadline: datetime | None) -> datetime | None:
    """From when on a tenth of the time to the deadline is left."""
    return None if deadline is None else deadline - (deadline - begin) / 10
