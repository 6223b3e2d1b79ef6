"""One question a second tells an idle worker all that it must know: each thing that can come true is seen by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import insert, update

from board.db.clock import now, read_now
from board.effects.models import breakers
from board.queue import budget, live
from board.queue.live import QueueRules
from board.queue.usage import Now
from board.tasks.models import tasks
from board.upkeep.models import schedules
from board.worker.glance import Glance, Seen
from tests.rig.working import OpenWorking, WorkingBoard


def quiet(working: OpenWorking, **narrow: Any) -> tuple[WorkingBoard, Glance]:
    board = working(start=False)
    board.type(use="echo")
    return board, board.board.make_consumer(**narrow)._glance


def change(board: WorkingBoard, **columns: Any) -> None:
    with board.board.db.write() as tx:
        tx.execute(update(tasks).values(**columns))


def test_where_there_is_nothing_nothing_is_seen(working: OpenWorking) -> None:
    board, glance = quiet(working)
    board.submit(run_after="2100-01-01T00:00:00Z")
    first, second = glance.look(), glance.look()
    assert (first.work, first.holds, first.due) == (False, False, [])
    assert first.rules == second.rules
    assert first.moment <= second.moment


@pytest.mark.parametrize("columns", [{}, {"pool": "files"}, {"lane": 0}, {"suspect": True}, {"held_by": "type:trial"}])
def test_work_is_seen(working: OpenWorking, columns: dict[str, Any]) -> None:
    board, glance = quiet(working)
    board.submit()
    if columns:
        change(board, **columns)
    assert glance.look().work


@pytest.mark.parametrize("narrow", [{"only_types": ["other"]}, {"only_lanes": [0, 1]}])
def test_what_others_are_to_do_is_none(working: OpenWorking, narrow: dict[str, Any]) -> None:
    board, glance = quiet(working, **narrow)
    board.submit(priority="P3")
    assert not glance.look().work


def test_what_the_clock_brings_about_is_seen(working: OpenWorking) -> None:
    board, glance = quiet(working)
    board.submit()
    change(board, status="pending", phase="act", has_action=False)
    with board.board.db.write() as tx:
        row = {"name": "daily", "cron": "0 8 * * *", "zone": "UTC", "body": {}, "catch_up": "one", "paused": False}
        stamps = {"version": 1, "changed_at": now(), "changed_by": "key:n8n"}
        tx.execute(insert(schedules).values(**row, **stamps, next_at=now()))
    assert set(glance.look().due) == {"finish grace times", "fire schedules"}


def a_connection_fails(board: WorkingBoard) -> None:
    with board.board.db.write() as tx:
        tx.execute(insert(breakers).values(connection="c", failures=1, shuts=0, since=now(), trouble=""))


def tokens_are_used(board: WorkingBoard) -> None:
    with board.board.db.write() as tx:
        budget.spend(tx, "trial", 5, Now(read_now(tx), ZoneInfo("UTC")))


def the_queue_is_paused(board: WorkingBoard) -> None:
    with board.board.db.write() as tx:
        live.change(tx, "user:li", lambda rules: QueueRules(paused=not rules.paused))


def a_type_is_added(board: WorkingBoard) -> None:
    board.type("another", use="echo")


@pytest.mark.parametrize(
    ("happens", "seen"),
    [
        (a_connection_fails, lambda _, after: after.holds),
        (tokens_are_used, lambda _, after: after.holds),
        (the_queue_is_paused, lambda before, after: before.rules != after.rules),
        (a_type_is_added, lambda before, after: before.rules != after.rules),
    ],
)
def test_what_was_changed_is_seen(
    working: OpenWorking, happens: Callable[[WorkingBoard], None], seen: Callable[[Seen, Seen], bool]
) -> None:
    board, glance = quiet(working)
    before = glance.look()
    happens(board)
    assert seen(before, glance.look())
