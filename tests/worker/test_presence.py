"""The table of workers: who is at work, on what, and who is gone; a second machine on SQLite is refused."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from board.db.clock import now
from board.db.engine import Database
from board.effects import lines
from board.ports import Job, Outcome, Success
from board.worker import presence
from board.worker.models import workers
from board.worker.presence import KEPT_SECONDS, SILENT_SECONDS, Entry, Presence, SecondHost, same_machine, this_host
from tests.rig.receiver import Receiver, Reply
from tests.rig.working import Gate, OpenWorking, Probe


def listed(db: Database) -> dict[str, dict[str, Any]]:
    with db.read() as connection:
        return {row["name"]: row for row in presence.listed(connection, None, 100)[1]}


def elsewhere(db: Database, **columns: Any) -> None:
    """A worker on another machine."""
    row = {"name": "far-1", "host": "far@0000", "version": "0", "slots": 1, "started_at": now(), "seen_at": now()}
    with db.write() as tx:
        tx.execute(insert(workers).values(**(row | columns)))


def test_a_worker_enters_lives_goes_silent_and_stops(db: Database, at: Callable[[float], None]) -> None:
    one = Presence(db, Entry("w1", 4, ["a", "b"], [0, 1]))
    assert one.enter() == []
    row = listed(db)["w1"]
    assert (row["status"], row["slots"], row["types"], row["lanes"]) == ("alive", 4, ["a", "b"], ["P0", "P1"])
    assert (row["running"], row["tasks"], row["claimed_at"], row["leader"]) == (0, [], None, False)
    assert row["host"] == this_host().rpartition("@")[0]
    at(SILENT_SECONDS + 1)
    assert listed(db)["w1"]["status"] == "silent"
    with db.write() as tx:
        one.took(1)
        one.beat(tx, 2)
    row = listed(db)["w1"]
    assert row["status"] == "alive"
    assert abs(row["claimed_at"] - row["seen_at"]) < timedelta(seconds=1)
    with db.write() as tx:
        one.leave(tx)
    assert listed(db)["w1"]["status"] == "stopped"
    at(SILENT_SECONDS * 3)
    assert listed(db)["w1"]["status"] == "stopped"


def test_who_was_not_seen_for_a_day_is_forgotten_and_enters_again(db: Database, at: Callable[[float], None]) -> None:
    one = Presence(db, Entry("w1", 4))
    one.enter()
    at(KEPT_SECONDS - 60)
    presence.forget(db)
    assert "w1" in listed(db)
    at(KEPT_SECONDS + 60)
    presence.forget(db)
    assert listed(db) == {}
    with db.write() as tx:  # it was only suspended
        one.beat(tx, 0)
    assert listed(db)["w1"]["status"] == "alive"


def test_a_second_machine_is_refused_on_sqlite_and_welcome_on_postgresql(db: Database) -> None:
    elsewhere(db)
    one = Presence(db, Entry("w1", 4))
    if db.is_sqlite:
        with pytest.raises(SecondHost, match=r"far-1 on another machine .* PostgreSQL"):
            one.enter()
        assert set(listed(db)) == {"far-1"}, "nothing of the refused one is kept"
    else:
        assert one.enter() == []


@pytest.mark.parametrize("gone", ["stopped", "silent"])
def test_a_machine_that_is_gone_refuses_nobody(sqlite_url: str, gone: str) -> None:
    db = Database(sqlite_url)
    elsewhere(db, **{"stopped_at": now()} if gone == "stopped" else {"seen_at": now(-SILENT_SECONDS - 1)})
    assert Presence(db, Entry("w1", 4)).enter() == []
    db.close()


def test_a_second_worker_on_the_same_machine_is_named_on_sqlite(db: Database) -> None:
    Presence(db, Entry("w1", 4)).enter()
    assert Presence(db, Entry("w2", 4)).enter() == (["w1"] if db.is_sqlite else [])


def test_machines_are_told_by_name_or_by_kernel() -> None:
    assert same_machine("a@1", "a@2"), "started anew"
    assert same_machine("a@1", "b@1"), "two containers of one machine"
    assert not same_machine("a@1", "b@2")
    assert not same_machine("a@", "b@"), "no kernel known"


def test_a_consumer_says_what_it_runs_and_says_goodbye(working: OpenWorking) -> None:
    began, gate = Gate(), Gate()

    async def work(job: Job) -> Outcome:
        began.open()
        await gate.passed()
        return Success()

    board = working(Probe(work), lease="1s")
    consumer = board.board.consumer
    assert consumer is not None
    board.type()
    board.submit()
    began.wait()
    row = listed(board.board.db)[consumer.name]
    assert (row["status"], row["tasks"], row["running"], row["slots"]) == ("alive", ["T-1"], 1, 4)
    board.until(lambda: listed(board.board.db)[consumer.name]["claimed_at"] is not None)
    seen = listed(board.board.db)[consumer.name]["seen_at"]
    board.until(lambda: listed(board.board.db)[consumer.name]["seen_at"] > seen)
    gate.open()
    board.wait("T-1", "done")
    board.until(lambda: listed(board.board.db)[consumer.name]["leader"])
    board.stop()
    row = listed(board.board.db)[consumer.name]
    assert (row["status"], row["running"], row["leader"]) == ("stopped", 0, False)


def test_a_stop_leaves_nothing_unfinished_and_begins_no_further_call(
    working_sqlite: OpenWorking, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(job: Job) -> Outcome:
        return Success()

    monkeypatch.setattr(lines, "MOST", lines.FIRST)  # a receiver with all its lines: rows are taken ahead for it
    receiver.reply(*[Reply(hang=True)] * 100)
    board = working_sqlite(Probe(work))
    board.type()
    for number in range(20):
        board.submit(f"T-{number}", callback_url=receiver.url)
    consumer = board.board.consumer
    assert consumer is not None
    board.until(lambda: any(it.ahead for it in consumer._sender._lines.values()))
    board.stop()
    assert consumer._loop.is_closed()
    assert asyncio.all_tasks(consumer._loop) == set()


@pytest.mark.alone
def test_a_stop_is_quick_though_the_database_hangs(working_sqlite: OpenWorking) -> None:
    """Somebody holds the write lock and does not let go."""
    began = Gate()

    async def work(job: Job) -> Outcome:
        began.open()
        await asyncio.sleep(60)
        return Success()

    board = working_sqlite(Probe(work))
    board.type()
    board.submit()
    began.wait()
    other = Database(board.board.settings.database_url)
    with other.write() as tx:
        tx.execute(update(workers).values(running=0))
        started = time.monotonic()
        board.stop()
        assert time.monotonic() - started < 7
    other.close()
    with board.board.db.read() as connection:
        assert connection.execute(select(workers.c.stopped_at)).scalars().all() == [None]
