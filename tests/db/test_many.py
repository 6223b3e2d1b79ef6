"""Many rows in one statement mean the same as one by one, on both databases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    FromClause,
    Insert,
    Integer,
    MetaData,
    RowMapping,
    SmallInteger,
    String,
    Table,
    Text,
    func,
    insert,
    literal,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, IntegrityError

from board.db.engine import Database
from board.db.many import Compound, among, given, insert_many, listed, pack, values_of
from board.db.types import JsonText, UtcTime

trial = Table(
    "trial",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("name", String(8), unique=True),
    Column("big", BigInteger),
    Column("small", SmallInteger),
    Column("yes", Boolean),
    Column("number", Float),
    Column("note", Text),
    Column("at", UtcTime()),
    Column("data", JsonText()),
)
trail = Table(
    "trail",
    trial.metadata,
    Column("id", Integer, primary_key=True),
    Column("made", Integer),
    Column("note", Text),
)
MOMENT = datetime(2026, 3, 1, 23, 30, 0, 1, tzinfo=timezone(timedelta(hours=8)))


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    yield from _opened(database_url)


@pytest.fixture
def postgres_db(postgres_url: str) -> Iterator[Database]:
    yield from _opened(postgres_url)


def _opened(url: str) -> Iterator[Database]:
    database = Database(url)
    with database.write() as tx:
        trial.metadata.create_all(tx)
    yield database
    database.close()


def rows(db: Database) -> list[dict[str, Any]]:
    with db.read() as connection:
        return [dict(row) for row in connection.execute(select(trial).order_by(trial.c.id)).mappings()]


SHAPE = dict(trial.c.items())


def write(tx: Connection, made: Sequence[dict[str, Any]], *, once: bool = False) -> Sequence[RowMapping]:
    """Insert rows, and along with each one its note into `trail`. once: rows whose name is taken stay out."""
    dialect = tx.dialect.name
    packed = pack(dialect, {name: SHAPE[name] for name in made[0]}, made, travel=["name"])
    rows = given(dialect, {name: SHAPE[name] for name in packed.differ})
    value = values_of(SHAPE, packed.same, packed.differ, rows)
    source = select(*(value[name].label(name) for name in made[0])).select_from(rows).where(literal(1) == 1)
    engine = sqlite if dialect == "sqlite" else postgresql
    change = engine.insert(trial).from_select(list(made[0]), source, include_defaults=False)
    change = change.on_conflict_do_nothing(index_elements=["name"]) if once else change

    def others(it: FromClause) -> list[Insert]:
        along = select(it.c.id, value["note"]).select_from(it.join(rows, it.c.name == rows.c.name))
        return [insert(trail).from_select(["made", "note"], along)]

    return Compound(dialect, change, trial.c.name, others).run(tx, packed, {})


def some(id_: int, **columns: Any) -> dict[str, Any]:
    empty = dict.fromkeys(column.name for column in trial.c)
    return empty | {"id": id_, "name": f"n{id_}"} | columns


def test_every_type_comes_back_as_it_went_in(db: Database) -> None:
    given = [
        some(
            1,
            big=2**63 - 1,
            small=-3,
            yes=True,
            number=0.1,
            note='"线索"\\n\n\t$1 %s',
            at=MOMENT,
            data={"a": [1, None]},
        ),
        some(2, big=-(2**63), small=7, yes=False, number=-1e300, note="", at=MOMENT + timedelta(1), data=[]),
        some(3, data=10**40),
        some(4, data="", note="null"),
    ]
    with db.write() as tx:
        write(tx, given)
    assert rows(db) == given
    assert rows(db)[0]["at"].tzinfo is UTC


def test_values_that_are_alike_to_python_are_kept_apart(db: Database) -> None:
    with db.write() as tx:
        write(tx, [some(1, data=[1]), some(2, data=[True]), some(3, data=[1.0])])
    assert [str(row["data"]) for row in rows(db)] == ["[1]", "[True]", "[1.0]"]


def test_what_all_have_in_common_does_not_travel() -> None:
    packed = pack("sqlite", SHAPE, [some(1, note="x", data={}), some(2, note="x", data={})])
    assert (packed.same["note"], packed.same["data"]) == ("x", {})
    assert packed.differ == ("id", "name")
    assert packed.rows == [{"id": 1, "name": "n1"}, {"id": 2, "name": "n2"}]
    assert pack("sqlite", SHAPE, [some(1), some(2)], travel=["id", "big"]).differ == ("id", "name", "big")


def test_what_is_written_along_concerns_the_changed_rows_alone(db: Database) -> None:
    with db.write() as tx:
        write(tx, [some(1), some(2)])
    with db.write() as tx:
        made = write(tx, [some(3, note="a"), some(4, name="n1", note="b"), some(5, note="c")], once=True)
        assert [row["id"] for row in made] == [3, 5]
        along = tx.execute(select(trail.c.made, trail.c.note).order_by(trail.c.made)).all()
        assert along == [(1, None), (2, None), (3, "a"), (5, "c")]
        assert write(tx, [some(6, name="n1"), some(7, name="n2")], once=True) == []
        assert tx.execute(select(func.count()).select_from(trail)).scalar_one() == 4


def test_one_of_many(db: Database) -> None:
    with db.write() as tx:
        write(tx, [some(number) for number in range(1, 6)])
        dialect = tx.dialect.name
        by_id = select(trial.c.id).where(among(dialect, trial.c.id)).order_by(trial.c.id)
        by_name = select(trial.c.id).where(among(dialect, trial.c.name))
        assert tx.execute(by_id, listed(dialect, [2, 4, 99])).scalars().all() == [2, 4]
        assert tx.execute(by_id, listed(dialect, [])).scalars().all() == []
        assert tx.execute(by_name, listed(dialect, ["n5", '"', "{x}"])).scalars().all() == [5]


def test_rows_alone(db: Database) -> None:
    alike = [{"note": "x", "yes": True}, {"note": "x", "yes": True}]
    with db.write() as tx:
        insert_many(tx, trial, [])
        insert_many(tx, trial, alike)
        insert_many(tx, trial, [some(9, data={"a": 1})])
    assert [(row["note"], row["data"]) for row in rows(db)] == [("x", None), ("x", None), (None, {"a": 1})]


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**400])
def test_a_number_that_is_too_large_is_refused(db: Database, number: int) -> None:
    with pytest.raises(OverflowError), db.write() as tx:
        write(tx, [some(1, big=1), some(2, big=number)])
    assert rows(db) == []


@pytest.mark.parametrize("unusable", [object(), float("nan"), {"x": {1, 2}}])
def test_what_is_no_json_is_refused(db: Database, unusable: Any) -> None:
    with pytest.raises((TypeError, ValueError)), db.write() as tx:
        write(tx, [some(1), some(2, data=unusable)])
    assert rows(db) == []


@pytest.mark.parametrize("unfit", [{"name": "far too long"}, {"small": 70_000}, {"note": "a\0b"}])
def test_what_does_not_fit_its_column_is_refused_not_cut(postgres_db: Database, unfit: dict[str, Any]) -> None:
    with pytest.raises(DataError), postgres_db.write() as tx:
        write(tx, [some(1), some(2, **unfit)])
    assert rows(postgres_db) == []


def test_a_broken_rule_of_the_table_undoes_all(db: Database) -> None:
    with pytest.raises(IntegrityError), db.write() as tx:
        write(tx, [some(1), some(2, name="n1")])
    assert rows(db) == []
