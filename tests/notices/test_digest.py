"""The daily digest: once a day over all processes, at its hour in its zone, grouped, and silent when nothing failed."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Any

import pytest
from sqlalchemy import select, update

from board.access.rights import key_actor
from board.catalogue.apply import apply
from board.db.clock import now
from board.notices import routing, wording
from board.notices.digest import Digest
from board.notices.models import notices, routes
from board.notices.routing import RouteIn
from board.tasks.models import tasks
from tests.rig.working import OpenWorking, WorkingBoard

ROOT = key_actor("root", ["admin", "read"])


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    made = working(start=False)
    made.apply(connections=[{"name": "team", "kind": "slack", "url": "https://hooks.slack.com/services/T/B/x"}])
    made.type("lead", use="echo")
    made.type("invoice", use="echo")
    wish = RouteIn.model_validate({"audience": "*", "about": ["digest"], "connection": "team", "lang": "zh_CN"})
    with made.board.db.write() as tx:
        routing.make(tx, wish, ROOT, made.board.notifiers, zone="UTC", lang="en")
    return made


def digest(board: WorkingBoard, at: time | None = time(0, 0)) -> Digest:
    return Digest(board.board.db, board.board.catalogue, at, "UTC")


def fail(board: WorkingBoard, type: str, cause: str, *names: str, days: float = 0.0) -> None:
    for name in names:
        board.submit(name, type=type)
    with board.board.db.write() as tx:
        failed = update(tasks).where(tasks.c.task_id.in_(names))
        tx.execute(failed.values(status="failed", error_cause=cause, finished_at=now(-86_400.0 * days)))


def told(board: WorkingBoard) -> list[Any]:
    with board.board.db.read() as connection:
        return list(connection.execute(select(notices).order_by(notices.c.id)).mappings())


def test_once_a_day_whoever_looks_and_how_often(board: WorkingBoard) -> None:
    fail(board, "lead", "timeout", "A", "B")
    fail(board, "lead", "auth", "C", days=3)
    fail(board, "invoice", "timeout", "D")
    assert [digest(board).look() for _ in range(3)] == [True, False, False]
    [notice] = told(board)
    assert notice["data"]["new"] == 3
    assert notice["data"]["all"] == 4
    assert notice["data"]["causes"] == [
        {"type": "lead", "cause": "timeout", "number": 2, "new": 2},
        {"type": "invoice", "cause": "timeout", "number": 1, "new": 1},
        {"type": "lead", "cause": "auth", "number": 1, "new": 0},
    ]
    with board.board.db.read() as connection:
        route = connection.execute(select(routes)).mappings().one()
    message = wording.compose("n1", [notice], route, "https://board.example.org/")
    assert message.title == "AI Task Board: 当日失败任务: 3"
    assert "2 × lead: timeout" in message.text
    assert message.link == "https://board.example.org/tasks?status=failed"
    board.at(86_400)
    assert digest(board).look()
    assert len(told(board)) == 1  # nothing new has failed since


def test_a_day_without_a_failure_is_silent(board: WorkingBoard) -> None:
    fail(board, "lead", "timeout", "A", days=2)
    assert digest(board).look()
    fail(board, "lead", "timeout", "B")
    assert not digest(board).look()
    assert told(board) == []


def test_who_does_not_own_a_type_hears_nothing_of_it(board: WorkingBoard) -> None:
    from board.access import groups, users

    with board.board.db.write() as tx:
        groups.add(tx, "sales")
        groups.add(tx, "support")
        users.add(tx, "li@example.org")
        groups.join(tx, "sales", "li@example.org")
        types = [{"name": "lead", "handler": {"use": "echo"}, "require_id": False, "owner": "sales"}]
        apply(tx, {"types": types}, handlers=board.board.handlers, vault=board.board.vault, author="key:test")
        for name in ("li@example.org", "support"):
            wish = RouteIn.model_validate({"audience": name, "about": ["digest"], "connection": "team"})
            routing.make(tx, wish, ROOT, board.board.notifiers, zone="UTC", lang="en")
    fail(board, "lead", "timeout", "A")
    digest(board).look()
    assert [it["route"] for it in told(board)] == [1, 2]


@pytest.mark.parametrize(
    ("moment", "due"),
    [
        ("2026-12-01T00:59:59", None),  # 08:59:59 in Shanghai
        ("2026-12-01T01:00:00", "2026-12-01T01:00:00"),
        ("2026-12-01T15:59:00", "2026-12-01T01:00:00"),
        ("2026-12-01T16:00:00", None),  # the next day there
    ],
)
def test_its_hour_is_that_of_the_zone(board: WorkingBoard, moment: str, due: str | None) -> None:
    made = Digest(board.board.db, board.board.catalogue, time(9, 0), "Asia/Shanghai")
    found = made._due(datetime.fromisoformat(moment).replace(tzinfo=UTC))
    assert found == (None if due is None else datetime.fromisoformat(due).replace(tzinfo=UTC))


def test_it_can_be_switched_off(board: WorkingBoard) -> None:
    assert not digest(board, None).look()
