"""Many rows in one statement: they travel as one JSON text, and the database takes it apart.

A parameter per value costs the driver more than the row costs the database, and on PostgreSQL a statement per row costs
more than both. Columns whose value is the same in every row are plain parameters and do not travel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Executable,
    Float,
    FromClause,
    Insert,
    Integer,
    RowMapping,
    Table,
    Text,
    Update,
    any_,
    bindparam,
    cast,
    column,
    func,
    insert,
    literal_column,
    select,
    true,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.types import TypeEngine

from board.db.types import JsonText, UtcTime, dump_json, sqlite_text

ROWS = "given_rows"  # the name of the parameter that `pack` makes
LISTED = "listed_numbers"  # and of the one that `numbers` makes
Row = Mapping[str, Any]
Shape = Mapping[str, Column[Any]]  # what travels: under which name, and the values of which column


def given(dialect: str, shape: Shape) -> FromClause:
    """What `pack` packed, to select from: columns of these names, of the columns' types."""
    packed = bindparam(ROWS, type_=Text())
    if dialect == "postgresql":
        # Wide types on purpose: what is too long or too large is refused by the column that should store it.
        columns = [column(name, _carried(it.type)) for name, it in shape.items()]
        rows = func.json_to_recordset(cast(packed, postgresql.JSON())).table_valued(*columns, name="packed")
        return select(rows.render_derived(with_types=True)).cte("given")
    each = func.json_each(packed).table_valued("value", name="each_row")
    parts = [
        func.json_extract(each.c.value, literal_column(f"'$.{name}'"), type_=it.type).label(name)  # names of our own
        for name, it in shape.items()
    ]
    return select(*parts).subquery("given")


def pack(dialect: str, shape: Shape, rows: Sequence[Row]) -> str:
    """The rows as the value of the parameter ROWS.

    OverflowError for a number that fits no column; TypeError and ValueError for what JSON does not know.
    """
    writers = [(name, _writer(dialect, it.type)) for name, it in shape.items()]
    return dump_json([{name: write(row[name]) for name, write in writers} for row in rows])


def among(dialect: str, column_: Column[int]) -> ColumnElement[bool]:
    """Whether a column is one of the numbers of `numbers`. Unlike IN, the statement is the same for any count."""
    listed = bindparam(LISTED, type_=Text())
    if dialect == "postgresql":
        return column_ == any_(cast(listed, postgresql.ARRAY(BigInteger())))
    return column_.in_(select(func.json_each(listed).table_valued("value", name="each_number").c.value))


def numbers(dialect: str, given_: Iterable[int]) -> dict[str, str]:
    """The parameter of `among`."""
    text = ",".join(map(str, given_))
    return {LISTED: f"{{{text}}}" if dialect == "postgresql" else f"[{text}]"}


def split(shape: Shape, rows: Sequence[Row]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What all rows have in common, and the names under which they differ. All rows must have the keys of `shape`."""
    first = rows[0]
    same: dict[str, Any] = {}
    differ: list[str] = []
    for name, column_ in shape.items():
        value = first[name]
        # Values that are equal in Python may be different JSON: 1 and true.
        comparable = value is None or not isinstance(column_.type, JsonText)
        if comparable and all(row[name] == value for row in rows):
            same[name] = value
        else:
            differ.append(name)
    return same, tuple(differ)


def new(name: str, column_: Column[Any]) -> BindParameter[Any]:
    """The parameter `new_NAME`, a value for a column; plain names are taken by UPDATE itself."""
    return bindparam(f"new_{name}", type_=column_.type)


def along(
    dialect: str, changed: Update, table: Table, others: Callable[[FromClause], Sequence[Insert | Update]]
) -> tuple[Executable, ...]:
    """A change of rows and what is written along with it, as statements to be executed one after another.

    The first answers with the changed rows. On PostgreSQL it is the only one, which saves the round trips. others: made
    from the changed rows, which must be told by their values: on SQLite what is given there is the table itself.
    """
    if dialect == "sqlite":
        return changed.returning(table), *others(table)
    rows = changed.returning(table).cte("changed")
    written = [other.cte(f"written_{number}") for number, other in enumerate(others(rows))]
    return (select(rows).add_cte(*written),)


def insert_many(
    tx: Connection, table: Table, rows: Sequence[Row], *, once: str | None = None, returning: bool = False
) -> Sequence[RowMapping]:
    """Insert rows in their order; all must have the same keys.

    once: a unique column; rows whose value is there already are left out. returning: answer with the rows as stored.
    """
    if not rows:
        return []
    if len(rows) == 1 and once is None and not returning:
        tx.execute(insert(table), dict(rows[0]))
        return []
    same, differ = split({name: table.c[name] for name in rows[0]}, rows)
    if not differ:  # something must say how many rows there are
        differ = (next(iter(same)),)
        del same[differ[0]]
    dialect = tx.dialect.name
    statement = _insert(dialect, table, tuple(same), differ, once, returning)
    made = tx.execute(statement, same | {ROWS: pack(dialect, {name: table.c[name] for name in differ}, rows)})
    return made.mappings().all() if returning else []


@lru_cache(maxsize=200)
def _insert(
    dialect: str, table: Table, same: tuple[str, ...], differ: tuple[str, ...], once: str | None, returning: bool
) -> Any:
    rows = given(dialect, {name: table.c[name] for name in differ})
    fixed = [bindparam(name, type_=table.c[name].type).label(name) for name in same]
    # WHERE: without one, SQLite takes ON CONFLICT for the condition of a join.
    source = select(*fixed, *(rows.c[name] for name in differ)).select_from(rows).where(true())
    make = sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
    statement = make.from_select([*same, *differ], source, include_defaults=False)
    if once is not None:
        statement = statement.on_conflict_do_nothing(index_elements=[once])
    return statement.returning(table) if returning else statement


def _carried(kind: TypeEngine[Any]) -> TypeEngine[Any]:
    if isinstance(kind, Integer):
        return BigInteger()
    return kind if isinstance(kind, UtcTime | Boolean | Float) else Text()


def _writer(dialect: str, kind: TypeEngine[Any]) -> Callable[[Any], Any]:
    if isinstance(kind, UtcTime):
        return _sqlite_time if dialect == "sqlite" else _time
    if isinstance(kind, JsonText):
        return _json
    return _integer if isinstance(kind, Integer) else _plain


def _sqlite_time(moment: datetime | None) -> str | None:
    return None if moment is None else sqlite_text(moment)


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _json(value: Any) -> str | None:
    return None if value is None else dump_json(value)


def _integer(number: int | None) -> int | None:
    """SQLite would store a longer number as a broken one, without a word."""
    if number is not None and not -(2**63) <= number < 2**63:
        raise OverflowError("a number is too large for the database")
    return number


def _plain(value: Any) -> Any:
    return value
