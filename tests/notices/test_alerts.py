"""Rules ring once they have held for long enough, say when it is over, and do not nag."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, event, insert, select, update

from board.access.rights import key_actor
from board.db.clock import now
from board.db.engine import Database
from board.effects.models import announcements, breakers, subscriptions
from board.notices import alerts, figures, rules
from board.notices.models import alerts as table
from board.notices.models import noted, routes
from board.notices.rules import NoSuchRule, RuleEdit
from board.tasks.ledger import Ledger
from board.tasks.models import tasks
from board.worker.models import workers
from tests.heart import create

DEEP: list[figures.Figure] = [("queue_depth", "", 301.0)]
SHUT: list[figures.Figure] = [("circuit_open", "dify", 1.0)]
ROOT = key_actor("root", ["admin"])


@pytest.fixture(autouse=True)
def somebody_listens(db: Database) -> None:
    """A person and a program that want to hear of alerts."""
    with db.write() as tx:
        route = {"audience": "*", "about": ["alert"], "connection": "team", "address": "", "zone": "UTC", "lang": "en"}
        tx.execute(insert(routes).values(owner="key:root", created_at=now(), **route))
        hook = {"id": "s1", "fingerprint": "f", "url": "https://x.example", "events": ["queue.alert"], "secret": ""}
        tx.execute(insert(subscriptions).values(owner="key:root", created_at=now(), **hook))


def test_nothing_is_noted_where_nobody_listens(db: Database) -> None:
    with db.write() as tx:
        tx.execute(delete(routes))
        tx.execute(delete(subscriptions))
        alerts.evaluate(tx, SHUT)
        assert tx.execute(select(noted)).all() == []
        assert tx.execute(select(announcements)).all() == []
        assert len(alerts.history(tx)) == 1


def look(db: Database, found: list[figures.Figure]) -> list[tuple[str, str]]:
    """What is told by it."""
    with db.write() as tx:
        tx.execute(delete(noted))
        tx.execute(delete(announcements))
        alerts.evaluate(tx, found)
        said = [(it["rule"], it["state"]) for it in tx.execute(select(noted.c.data).order_by(noted.c.id)).scalars()]
        programs = tx.execute(select(announcements.c.event)).scalars().all()
    assert programs == ["queue.alert"] * len(said)
    return said


def test_it_rings_once_it_has_lasted_and_says_when_it_is_over(db: Database, at: Any) -> None:
    assert look(db, DEEP) == []
    at(299)
    assert look(db, DEEP) == []
    at(301)
    assert look(db, DEEP) == [("queue_depth", "open")]
    at(361)
    assert look(db, DEEP) == []
    assert look(db, []) == [("queue_depth", "closed")]
    assert look(db, []) == []


def test_what_does_not_last_leaves_no_trace(db: Database, at: Any) -> None:
    look(db, DEEP)
    at(200)
    look(db, [])
    at(301)
    assert look(db, DEEP) == []
    with db.read() as connection:
        assert len(connection.execute(select(table)).all()) == 1
        assert alerts.history(connection) == []


def test_what_comes_again_within_its_quiet_time_is_in_the_history_only(db: Database, at: Any) -> None:
    assert look(db, SHUT) == [("circuit_open", "open")]
    assert look(db, []) == [("circuit_open", "closed")]
    at(600)
    assert look(db, SHUT) == []
    assert look(db, []) == []
    at(3700)
    assert look(db, SHUT) == [("circuit_open", "open")]
    with db.read() as connection:
        shown = alerts.history(connection)
        assert [(it["status"], it["told"]) for it in shown] == [("open", True), ("closed", False), ("closed", True)]
        assert len(alerts.history(connection, only_open=True)) == 1


def test_each_thing_rings_by_itself(db: Database) -> None:
    both: list[figures.Figure] = [*SHUT, ("circuit_open", "n8n", 1.0)]
    assert look(db, SHUT) == [("circuit_open", "open")]
    assert look(db, both) == [("circuit_open", "open")]


def test_a_rule_can_be_changed_and_switched_off(db: Database) -> None:
    with db.write() as tx:
        rules.edit(tx, "queue_depth", RuleEdit(threshold=1000, lasting=0), ROOT)
        rules.edit(tx, "queue_depth", RuleEdit(threshold=500), ROOT)
        with pytest.raises(NoSuchRule, match="there are: queue_depth"):
            rules.edit(tx, "nonsense", RuleEdit(), ROOT)
        assert rules.read(tx)[0] == rules.Rule("queue_depth", 500, 0.0)
    assert look(db, DEEP) == []
    assert look(db, [("queue_depth", "", 501.0)]) == [("queue_depth", "open")]
    with db.write() as tx:
        rules.edit(tx, "queue_depth", RuleEdit(enabled=False), ROOT)
    assert look(db, [("queue_depth", "", 501.0)]) == [("queue_depth", "closed")]


def measured(db: Database, folder: Path) -> dict[tuple[str, str], float]:
    with db.read() as connection:
        return {(name, scope): value for name, scope, value in figures.measure(connection, folder)}


def test_the_figures_are_those_of_the_board(db: Database, at: Any, tmp_path: Path) -> None:
    empty = measured(db, tmp_path)
    assert (empty["queue_depth", ""], empty["failed_rate", ""], empty["unknown_outcomes", ""]) == (0, 0, 0)
    assert ("no_claim", "") not in empty
    assert 0 < empty["disk_low", ""] < 100
    ledger = Ledger()
    ids = [create(db, ledger, f"T-{n}") for n in range(10)]
    with db.write() as tx:
        tx.execute(
            insert(breakers).values(connection="dify", failures=20, shuts=1, since=now(), until=now(9999), trouble="x")
        )
        worker = {"host": "h", "version": "1", "slots": 4, "running": 0}
        times = {"started_at": now(), "seen_at": now(), "claimed_at": now()}
        tx.execute(insert(workers).values(name="w", **worker, **times))
        failed = update(tasks).where(tasks.c.id.in_(ids[:6])).values(status="failed", finished_at=now())
        tx.execute(failed)
    at(400)
    found = measured(db, tmp_path)
    assert found["queue_depth", ""] == 4
    assert 399 < found["oldest_ready", "P2"] < 460
    assert 399 < found["no_claim", ""] < 460
    assert 399 < found["worker_silent", "w"] < 460
    assert found["failed_rate", ""] == 6.0
    assert found["circuit_open", "dify"] == 1.0
    with db.write() as tx:
        tx.execute(update(workers).values(claimed_at=now()))
    assert measured(db, tmp_path)["no_claim", ""] < 60
    at(4000)
    assert measured(db, tmp_path)["failed_rate", ""] == 0


def test_the_figures_read_only_what_waits_or_failed(db: Database) -> None:
    """A million finished ones cost nothing: tasks are found by where they stand."""
    if not db.is_sqlite:
        pytest.skip("an empty PostgreSQL reads whole tables, whatever its indexes; SQLite plans by their shape")
    seen: list[str] = []

    def hear(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        seen.append(statement)

    with db.read() as connection:
        event.listen(connection, "before_cursor_execute", hear)
        figures.measure(connection, Path("."))
        event.remove(connection, "before_cursor_execute", hear)
        found = [it for it in seen if "FROM tasks" in it]
        assert len(found) == 2
        for statement in found:
            plan = connection.exec_driver_sql("EXPLAIN QUERY PLAN " + statement, _any(statement)).all()
            said = " ".join(str(row[3]) for row in plan)
            by_status = "ix_tasks_status_created (status=?" in said  # as good, while there is not much
            assert "ix_tasks_failed" in said or "ix_tasks_ready" in said or by_status, said


def _any(statement: str) -> tuple[Any, ...]:
    return (0,) * statement.count("?")
