"""Whom a comment calls by name."""

from __future__ import annotations

import pytest

from board.access import groups, users
from board.access.rights import Role
from board.db.engine import Database
from board.review.mentions import MOST, mentioned, parts
from board.tasks.history import notes_page
from tests.rig.working import LI, OpenWorking


@pytest.fixture
def people(db: Database) -> Database:
    with db.write() as tx:
        for email in ("li@example.org", "wang@example.org", "wang@other.org", "gone@example.org"):
            users.add(tx, email, Role.REVIEWER)
        gone = users.find_by_email(tx, "gone@example.org")
        assert gone is not None
        users.disable(tx, gone.id)
        groups.add(tx, "sales")
        groups.add(tx, "li")
    return db


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("@li@example.org please", ["user:li@example.org"]),
        ("请＠li@example.org看一下，还有@sales。", ["user:li@example.org", "group:sales"]),
        ("@LI@Example.ORG, @sales, @sales.", ["user:li@example.org", "group:sales"]),
        ("(@wang@other.org)", ["user:wang@other.org"]),
        ("@wang", []),
        ("@li", ["group:li"]),
        ("write to li@example.org", []),
        ("@gone @gone@example.org @nobody @ @@", []),
        ("no call at all", []),
        ("", []),
    ],
)
def test_who_is_called(people: Database, text: str, called: list[str]) -> None:
    with people.read() as connection:
        assert mentioned(connection, text) == called


def test_the_only_one_whose_address_begins_so(people: Database) -> None:
    with people.write() as tx:
        groups.remove(tx, "li")
    with people.read() as connection:
        assert mentioned(connection, "@li") == ["user:li@example.org"]


def test_no_more_than_a_comment_can_mean(people: Database) -> None:
    with people.write() as tx:
        for number in range(MOST + 5):
            groups.add(tx, f"g{number}")
    with people.read() as connection:
        assert len(mentioned(connection, " ".join(f"@g{number}" for number in range(MOST + 5)))) == MOST


def test_a_long_text_takes_no_time(people: Database) -> None:
    with people.read() as connection:
        assert mentioned(connection, "@a" * 5000 + "a" * 10_000 + "@" * 1000) == []


def test_a_text_in_pieces() -> None:
    called = ["group:sales", "user:li@example.org"]
    assert parts("请＠sales看 a@b.org", called) == [("请", False), ("＠sales", True), ("看 a@b.org", False)]
    assert parts("", called) == []
    assert "".join(piece for piece, _ in parts("@a@ ＠b @", called)) == "@a@ ＠b @"


@pytest.mark.parametrize("text", ["@Li@example.org", "＠LI", "@li.", "@sales-"])
def test_who_was_called_is_marked(text: str) -> None:
    assert parts(text, ["group:sales", "user:li@example.org"]) == [(text, True)]


@pytest.mark.parametrize("text", ["@wang", "@li@other.org", "@sale", "@example.org"])
def test_what_named_nobody_stays_text_beside_what_did(text: str) -> None:
    assert parts(f"{text} @sales", ["group:sales", "user:li@example.org"]) == [
        (text, False),
        (" ", False),
        ("@sales", True),
    ]


def test_a_comment_keeps_whom_it_calls_and_pages_go_back(working_sqlite: OpenWorking) -> None:
    board = working_sqlite()
    board.type(use="echo", review={"when": "always"})
    with board.board.db.write() as tx:
        groups.add(tx, "sales")
    board.submit()
    board.wait("T-1", "needs_review")
    for text in ("one", "two @sales", "three"):
        with board.board.db.write() as tx:
            board.board.holding.comment(tx, board.reviews()[0]["id"], text, LI, "api")
    with board.board.db.read() as connection:
        last = notes_page(connection, board.task()["id"], None, 2)
        first = notes_page(connection, board.task()["id"], last.next_cursor, 2)
    assert [(row["note"], row["data"]) for row in last.rows] == [
        ("two @sales", {"mentions": ["group:sales"]}),
        ("three", None),
    ]
    assert [row["note"] for row in first.rows] == ["one"]
    assert first.next_cursor is None
