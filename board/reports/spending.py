"""What attempts of one week took, by type and by connection: their number, failures, time, tokens and money."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlalchemy import Connection, Subquery, and_, case, func, select

from board.catalogue.models import task_types
from board.reports.figures import spread
from board.reports.sql import json_part, percentiles, seconds_between, within
from board.reports.weeks import Window
from board.tasks.models import attempts, task_events, tasks
from board.tasks.states import Phase, Status


def _ended(window: Window) -> Subquery:
    """Attempts that ended in the week. connection: which one their type, in the version that they ran, called."""
    end, it, kind = task_events, attempts, task_types
    called = case(
        (it.c.phase == Phase.ACT, json_part(kind.c.spec, "action", "connection")),
        else_=json_part(kind.c.spec, "handler", "connection"),
    )
    return (
        select(tasks.c.type, called.label("connection"), it.c.outcome, it.c.error_cause, it.c.tokens, it.c.cost)
        .add_columns(seconds_between(it.c.started_at, end.c.at).label("seconds"))
        .select_from(end)
        .join(it, and_(it.c.task == end.c.task, it.c.number == end.c.attempt))
        .join(tasks, tasks.c.id == end.c.task)
        .outerjoin(kind, and_(kind.c.name == tasks.c.type, kind.c.version == it.c.type_version))
        .where(within(window, end.c.at), end.c.from_status == Status.RUNNING)
        .subquery()
    )


def spent(connection: Connection, window: Window) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """By type `{tokens, cost}`; by connection `{calls, failed, causes, tokens, cost, time}`.

    cost: amounts as decimal texts by currency, added exactly.
    """
    it = _ended(window)
    columns = it.c.type, it.c.connection, it.c.outcome, it.c.error_cause, it.c.cost
    query = select(*columns, func.count().label("n"), func.sum(it.c.tokens).label("tokens")).group_by(*columns)
    types: dict[str, _Sum] = defaultdict(_Sum)
    called: dict[str, _Sum] = defaultdict(_Sum)
    for row in connection.execute(query):
        types[row.type].add(row)
        if row.connection is not None:
            called[row.connection].add(row)
    told = {}
    if called:
        times = select(it.c.connection, it.c.seconds).where(it.c.connection.is_not(None)).subquery()
        for row in connection.execute(percentiles(times, "connection")):
            told[row.connection] = called[row.connection].whole() | {"time": spread(row.n, row.p50, row.p90, row.most)}
    return {name: total.money() for name, total in types.items()}, told


class _Sum:
    def __init__(self) -> None:
        self.calls = self.failed = self.tokens = 0
        self.causes: Counter[str] = Counter()
        self.costs: dict[str, Decimal] = defaultdict(Decimal)

    def add(self, row: Any) -> None:
        self.calls += row.n
        self.tokens += int(row.tokens or 0)
        if row.error_cause is not None:
            self.failed += row.n
            self.causes[row.error_cause] += row.n
        if row.cost:
            amount, _, currency = row.cost.partition(" ")
            with suppress(InvalidOperation):  # else a handler's own words; its tokens count all the same
                if (cost := Decimal(amount)).is_finite():
                    self.costs[currency.strip()] += cost * row.n

    def money(self) -> dict[str, Any]:
        return {"tokens": self.tokens, "cost": {name: f"{it:f}" for name, it in sorted(self.costs.items())}}

    def whole(self) -> dict[str, Any]:
        causes = [{"cause": cause, "n": n} for cause, n in self.causes.most_common()]
        return {"calls": self.calls, "failed": self.failed, "causes": causes} | self.money()
