"""What the two databases say differently and reports need: times in seconds, parts of JSON, days, percentiles."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Float,
    Integer,
    ScalarSelect,
    Subquery,
    Text,
    and_,
    case,
    func,
    literal,
    select,
    type_coerce,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from board.reports.weeks import Window
from board.tasks.models import task_events


class seconds_between(FunctionElement[float]):
    """Seconds from the first moment to the second."""

    type = Float()
    name = "seconds_between"
    inherit_cache = True


@compiles(seconds_between, "postgresql")
def _postgres_seconds(element: Any, compiler: Any, **options: Any) -> str:
    earlier, later = (compiler.process(it, **options) for it in element.clauses)
    return f"CAST(EXTRACT(EPOCH FROM ({later}) - ({earlier})) AS double precision)"


@compiles(seconds_between, "sqlite")
def _sqlite_seconds(element: Any, compiler: Any, **options: Any) -> str:
    earlier, later = (compiler.process(it, **options) for it in element.clauses)
    return f"ROUND((julianday({later}) - julianday({earlier})) * 86400.0, 3)"


class _JsonPart(FunctionElement[str]):
    type = Text()
    name = "json_part"
    inherit_cache = True


def json_part(column: ColumnElement[Any], *path: str) -> ColumnElement[str]:
    """The text at a path of a column that holds JSON; NULL where there is none. path: names of ours, never given."""
    return _JsonPart(type_coerce(column, Text()), _literal("$." + ".".join(path)), _literal("{" + ",".join(path) + "}"))


def _literal(text: str) -> ColumnElement[str]:
    return literal(text, Text(), literal_execute=True)


@compiles(_JsonPart, "postgresql")
def _postgres_json(element: Any, compiler: Any, **options: Any) -> str:
    column, _, path = (compiler.process(it, **options) for it in element.clauses)
    return f"(CAST({column} AS json) #>> CAST({path} AS text[]))"


@compiles(_JsonPart, "sqlite")
def _sqlite_json(element: Any, compiler: Any, **options: Any) -> str:
    column, path, _ = (compiler.process(it, **options) for it in element.clauses)
    return f"json_extract({column}, {path})"


def within(window: Window, moment: ColumnElement[Any]) -> ColumnElement[bool]:
    """Half-open: what happens at the very end belongs to what comes next."""
    return and_(moment >= window.begin, moment < window.end)


def day_of(window: Window, moment: ColumnElement[Any]) -> ColumnElement[int]:
    """0 (Monday) to 6, by the bounds of the days, so that a change of the clock needs no arithmetic in SQL."""
    cases = [(moment < bound, number) for number, bound in enumerate(window.days[1:-1])]
    return case(*cases, else_=6)


def beside(event: Any, column: str, *, after: bool) -> ScalarSelect[Any]:
    """A column of the move of the same task that came next after an event, or last before it.

    One look into the unique index on (task, seq), whatever the length of the history: measured with 200,000 events it
    is faster than a window over all events of these tasks, and needs no event from outside the week but those.
    """
    it = task_events.alias()
    order, side = (it.c.seq, it.c.seq > event.c.seq) if after else (it.c.seq.desc(), it.c.seq < event.c.seq)
    return (
        select(it.c[column])
        .where(it.c.task == event.c.task, side, it.c.to_status.is_not(None))
        .order_by(order)
        .limit(1)
        .correlate(event)
        .scalar_subquery()
    )


def percentiles(rows: Subquery, *keys: str) -> Any:
    """Of a subquery with `seconds`: for each combination of keys n, p50, p90 and the most, by nearest rank.

    ceil(n / 2) and ceil(9 n / 10) in whole numbers, which both databases divide alike.
    """
    by = [rows.c[name] for name in keys]
    rank = func.row_number().over(partition_by=by or None, order_by=rows.c.seconds)
    n = func.count().over(partition_by=by or None)
    ranked = select(*by, rows.c.seconds, rank.label("rank"), n.label("n")).subquery()

    def at(number: ColumnElement[int]) -> ColumnElement[Any]:
        return func.max(case((ranked.c.rank == number, ranked.c.seconds)))

    count = type_coerce(ranked.c.n, Integer())
    return select(
        *(ranked.c[name] for name in keys),
        func.max(ranked.c.n).label("n"),
        at((count + 1) // 2).label("p50"),
        at((count * 9 + 9) // 10).label("p90"),
        func.max(ranked.c.seconds).label("most"),
    ).group_by(*(ranked.c[name] for name in keys))
