"""Many rows in one statement: they travel as one JSON text, and the database takes it apart.

A parameter per value costs the driver more than the row costs the database, and on PostgreSQL a statement per row costs
more than both. Columns whose value is the same in every row are plain parameters and do not travel.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
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
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeEngine

from board.db.types import JsonText, UtcTime, dump_json, sqlite_text

ROWS = "given_rows"  # the name of the parameter that holds packed rows
LISTED = "listed_values"  # and of the one for `among`
Row = Mapping[str, Any]
Shape = Mapping[str, Column[Any]]  # what travels: under which name, and the values of which column


class Packed(NamedTuple):
    """Rows on their way. same: what they have in common, by name; differ: the names of the rest; rows: only these."""

    same: dict[str, Any]
    differ: tuple[str, ...]
    rows: Sequence[dict[str, Any]]

    @property
    def parameters(self) -> dict[str, Any]:
        return {f"new_{name}": value for name, value in self.same.items()} | {ROWS: dump_json(self.rows)}


def pack(dialect: str, shape: Shape, rows: Sequence[Row], *, travel: Collection[str] = ()) -> Packed:
    """Pack rows, which must have the keys of `shape`. travel: what is sent in any case, and at least one column is.

    OverflowError for a number that fits no column; TypeError and ValueError for what JSON does not know.
    """
    same: dict[str, Any] = {}
    columns: dict[str, list[Any]] = {}
    must = travel or (next(iter(shape)),)
    for name, it in shape.items():
        values = [row[name] for row in rows]
        first, write = values[0], _writer(dialect, it.type)
        if write is not _json and name not in must and values.count(first) == len(values):
            same[name] = first
            continue
        # Of JSON the texts are compared: [1] and [true] are equal in Python.
        written = [write(value) for value in values] if write is not _plain else values
        if write is _json and name not in must and written.count(written[0]) == len(written):
            same[name] = first
        else:
            columns[name] = written
    differ = tuple(columns)
    each = [dict(zip(differ, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return Packed(same, differ, each)


def given(dialect: str, shape: Shape) -> FromClause:
    """Packed rows, to select from: columns of these names, of the columns' types."""
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


def values_of(shape: Shape, same: Iterable[str], differ: Iterable[str], rows: FromClause) -> dict[str, Any]:
    """The value of each name, as an expression. rows: what `given` gave."""
    alike = {name: bindparam(f"new_{name}", type_=shape[name].type) for name in same}  # UPDATE takes plain names itself
    return alike | {name: rows.c[name] for name in differ}


def keyed(dialect: str, key: Column[Any], rows: FromClause) -> ColumnElement[bool]:
    """Whether a row of a table is the one that a packed row means, by a key of the same name.

    PostgreSQL takes packed rows for a hundred, and would read a small table as a whole rather than look up so many.
    """
    same = key == rows.c[key.name]
    if dialect == "postgresql":
        return same & (key == any_(func.array(select(rows.c[key.name]).scalar_subquery())))
    return same


def among(dialect: str, column_: Column[Any]) -> ColumnElement[bool]:
    """Whether a column's value is one of `listed`. Unlike IN, the statement is the same for any number of them."""
    if dialect == "postgresql":
        return column_ == any_(bindparam(LISTED, type_=postgresql.ARRAY(_carried(column_.type))))
    each = func.json_each(bindparam(LISTED, type_=Text())).table_valued("value", name="each_value")
    return column_.in_(select(each.c.value))


def listed(dialect: str, values: Iterable[Any]) -> dict[str, Any]:
    """The parameter of `among`."""
    return {LISTED: list(values) if dialect == "postgresql" else dump_json(list(values))}


class Compound:
    """A change of rows of one table, and what is written along with it: one statement on PostgreSQL.

    change: an INSERT or UPDATE. key: the column that tells which packed row a changed one belongs to. others: made from
    the changed rows, to be joined with the packed ones by the key. On SQLite, which has no round trips to save, they
    are statements of their own, from the table itself.
    """

    def __init__(
        self,
        dialect: str,
        change: Insert | Update,
        key: Column[Any],
        others: Callable[[FromClause], Sequence[Insert | Update]],
    ) -> None:
        self._key = key.name
        self._first: Executable = change.returning(key.table)
        self._others: Sequence[Insert | Update] = ()
        if dialect == "sqlite":
            self._others = others(key.table)
        else:
            rows = change.returning(key.table).cte("changed")
            written = [other.cte(f"written_{number}") for number, other in enumerate(others(rows))]
            self._first = select(rows).add_cte(*written)

    def run(self, tx: Connection, packed: Packed, parameters: Mapping[str, Any]) -> Sequence[RowMapping]:
        """Write. The changed rows, whole. parameters: besides those of `packed`."""
        together = {**parameters, **packed.parameters}
        rows = tx.execute(self._first, together).mappings().all()
        if rows and self._others:
            if len(rows) < len(packed.rows):
                changed = {row[self._key] for row in rows}
                left = packed._replace(rows=[row for row in packed.rows if row[self._key] in changed])
                together |= left.parameters
            for other in self._others:
                tx.execute(other, together)
        return rows


def insert_many(tx: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows in their order; all must have the same keys."""
    if not rows:
        return
    dialect = tx.dialect.name
    packed = pack(dialect, {name: table.c[name] for name in rows[0]}, rows)
    tx.execute(_insert(dialect, table, tuple(packed.same), packed.differ), packed.parameters)


@lru_cache(maxsize=100)
def _insert(dialect: str, table: Table, same: tuple[str, ...], differ: tuple[str, ...]) -> Insert:
    shape = {name: table.c[name] for name in (*same, *differ)}
    rows = given(dialect, {name: shape[name] for name in differ})
    value = values_of(shape, same, differ, rows)
    source = select(*(value[name].label(name) for name in shape)).select_from(rows)
    return insert(table).from_select(list(shape), source, include_defaults=False)


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
