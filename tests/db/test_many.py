"""Many rows in one statement mean the same as one by one, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, MetaData, SmallInteger, String, Table, Text, select
from sqlalchemy.exc import DataError, IntegrityError

from board.db.engine import Database
from board.db.many import insert_many, split
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
        trial.create(tx)
    yield database
    database.close()


def rows(db: Database) -> list[dict[str, Any]]:
    with db.read() as connection:
        return [dict(row) for row in connection.execute(select(trial).order_by(trial.c.id)).mappings()]


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
        insert_many(tx, trial, given)
    assert rows(db) == given
    assert rows(db)[0]["at"].tzinfo is UTC


def test_values_that_are_alike_to_python_are_kept_apart(db: Database) -> None:
    with db.write() as tx:
        insert_many(tx, trial, [some(1, data=[1]), some(2, data=[True]), some(3, data=[1.0])])
    assert [str(row["data"]) for row in rows(db)] == ["[1]", "[True]", "[1.0]"]


def test_what_all_have_in_common_does_not_travel() -> None:
    same, differ = split(dict(trial.c.items()), [some(1, note="x", data={}), some(2, note="x", data={})])
    assert same["note"] == "x"
    assert differ == ("id", "name", "data")


def test_rows_that_exist_are_left_out_and_the_made_ones_come_back(db: Database) -> None:
    with db.write() as tx:
        insert_many(tx, trial, [some(1)])
        made = insert_many(tx, trial, [some(11, name="n1"), some(2), some(3)], once="name", returning=True)
        assert [row["name"] for row in made] == ["n2", "n3"]
        assert insert_many(tx, trial, [some(12, name="n1")], once="name", returning=True) == []
    assert [row["id"] for row in rows(db)] == [1, 2, 3]


def test_a_single_row_and_rows_without_any_difference(db: Database) -> None:
    with db.write() as tx:
        insert_many(tx, trial, [])
        insert_many(tx, trial, [{"note": "x", "yes": True}, {"note": "x", "yes": True}])
        insert_many(tx, trial, [some(9, data={"a": 1})])
    assert [(row["note"], row["data"]) for row in rows(db)] == [("x", None), ("x", None), (None, {"a": 1})]


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**400])
def test_a_number_that_is_too_large_is_refused(db: Database, number: int) -> None:
    with pytest.raises(OverflowError), db.write() as tx:
        insert_many(tx, trial, [some(1, big=1), some(2, big=number)])
    assert rows(db) == []


@pytest.mark.parametrize("unusable", [object(), float("nan"), {"x": {1, 2}}])
def test_what_is_no_json_is_refused(db: Database, unusable: Any) -> None:
    with pytest.raises((TypeError, ValueError)), db.write() as tx:
        insert_many(tx, trial, [some(1), some(2, data=unusable)])
    assert rows(db) == []


@pytest.mark.parametrize("unfit", [{"name": "far too long"}, {"small": 70_000}, {"note": "a\0b"}])
def test_what_does_not_fit_its_column_is_refused_not_cut(postgres_db: Database, unfit: dict[str, Any]) -> None:
    with pytest.raises(DataError), postgres_db.write() as tx:
        insert_many(tx, trial, [some(1), some(2, **unfit)])
    assert rows(postgres_db) == []


def test_a_broken_rule_of_the_table_undoes_all(db: Database) -> None:
    with pytest.raises(IntegrityError), db.write() as tx:
        insert_many(tx, trial, [some(1), some(2, name="n1")])
    assert rows(db) == []
