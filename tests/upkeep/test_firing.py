"""Schedules fire each due time once: over processes, changes, outages and daylight saving. B009"""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from board import settings
from board.access.rights import key_actor
from board.catalogue.apply import apply
from board.db.clock import read_now
from board.rooms import Board, open_board
from board.tasks.ledger import find
from board.tasks.models import task_events, tasks
from board.upkeep.firing import KEPT_DAYS, MOST_CAUGHT_UP, Firing
from board.upkeep.models import firings, schedules
from board.upkeep.schedules import ScheduleEdit, ScheduleIn
from tests.heart import settable_clock

BY = key_actor("ops", ["admin"]).by("api")
MONDAY = datetime(2027, 3, 1, 8, 59, 30, tzinfo=UTC)
DAY, HOUR, MINUTE = 86_400.0, 3600.0, 60.0


class Clockwork:
    """A board whose clock stands where the test puts it."""

    def __init__(self, board: Board, at: Callable[[float], None]) -> None:
        self.board, self._at = board, at
        self.firing = Firing(board.db, board.intake)
        self.go_to(MONDAY)

    def go_to(self, moment: datetime) -> None:
        self._at((moment - datetime.now(UTC)).total_seconds())

    def go_on(self, seconds: float) -> None:
        with self.board.db.read() as connection:
            self.go_to(read_now(connection) + timedelta(seconds=seconds))

    def schedule(self, name: str = "daily", cron: str = "0 9 * * *", zone: str = "UTC", **more: Any) -> Any:
        task = more.pop("task", {"type": "trial", "payload": {"n": 1}})
        body = ScheduleIn.model_validate({"name": name, "cron": cron, "zone": zone, "task": task, **more})
        return self.board.schedules.create(body, BY)

    def edit(self, name: str = "daily", **more: Any) -> Any:
        return self.board.schedules.edit(name, ScheduleEdit.model_validate(more), BY)

    def fired(self) -> list[tuple[str, str | None]]:
        """(due time, ID of the task) of all firings."""
        with self.board.db.read() as connection:
            rows = connection.execute(select(firings).order_by(firings.c.due_at)).all()
        return [(f"{row.due_at:%d %H:%M}", row.task_id) for row in rows]

    def notes(self) -> list[str | None]:
        with self.board.db.read() as connection:
            return list(connection.execute(select(firings.c.note).order_by(firings.c.due_at)).scalars())

    def task_ids(self) -> list[str]:
        with self.board.db.read() as connection:
            return list(connection.execute(select(tasks.c.task_id).order_by(tasks.c.id)).scalars())

    def next_at(self, name: str = "daily") -> datetime | None:
        with self.board.db.read() as connection:
            found: datetime | None = connection.execute(
                select(schedules.c.next_at).where(schedules.c.name == name)
            ).scalar_one()
        return found


@pytest.fixture
def clockwork(database_url: str, tmp_path: Path) -> Iterator[Clockwork]:
    board = open_board(settings.load(database_url=database_url, data_dir=tmp_path / "data"))
    with board.db.write() as tx:
        trial = {"name": "trial", "handler": {"use": "echo"}}
        apply(tx, {"types": [trial]}, handlers=board.handlers, vault=board.vault, author="key:test")
    with settable_clock(board.db) as at:
        yield Clockwork(board, at)
    board.close()


def test_a_due_time_puts_its_task_in_once(clockwork: Clockwork) -> None:
    row = clockwork.schedule()
    assert row["next_at"] == datetime(2027, 3, 1, 9, 0, tzinfo=UTC)
    assert clockwork.firing.fire() == 0
    clockwork.go_on(31)
    assert clockwork.firing.fire() == 1
    assert [clockwork.firing.fire() for _ in range(3)] == [0, 0, 0]
    assert clockwork.task_ids() == ["schedule:daily:2027-03-01T09:00:00Z"]
    assert clockwork.fired() == [("01 09:00", "schedule:daily:2027-03-01T09:00:00Z")]
    assert clockwork.next_at() == datetime(2027, 3, 2, 9, 0, tzinfo=UTC)


def test_the_task_says_where_it_comes_from(clockwork: Clockwork) -> None:
    clockwork.schedule(task={"type": "trial", "title": "Morning", "priority": "P1", "tags": ["a"]})
    clockwork.go_on(31)
    clockwork.firing.fire()
    with clockwork.board.db.read() as connection:
        row = find(connection, clockwork.task_ids()[0])
        assert row is not None
        document = clockwork.board.task_document(connection, row)
        event = connection.execute(select(task_events)).mappings().one()
    assert (document["title"], document["priority"], document["tags"]) == ("Morning", "P1", ["a"])
    origin = {"system": "schedule", "workflow_id": "daily", "execution_id": "2027-03-01T09:00:00Z"}
    assert document["origin"] == origin
    assert (event["actor_kind"], event["actor_name"], event["channel"]) == ("timer", "schedule daily", "timer")


def test_a_template_makes_the_id(clockwork: Clockwork) -> None:
    clockwork.schedule(task={"type": "trial", "task_id": "report:{{ today }}"})
    clockwork.go_on(31)
    clockwork.firing.fire()
    assert clockwork.task_ids() == ["report:2027-03-01"]


def test_many_who_fire_at_once_make_one_task(clockwork: Clockwork) -> None:
    """Two leaders for a blink, or twenty: the unique row and the guarded time let one through."""
    clockwork.schedule(cron="* * * * *")
    for _ in range(3):
        clockwork.go_on(60)
        start = threading.Barrier(6)

        def fire(start: threading.Barrier = start) -> None:
            start.wait()
            Firing(clockwork.board.db, clockwork.board.intake).fire()

        threads = [threading.Thread(target=fire) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(clockwork.task_ids()) == len(set(clockwork.fired())) == 3


def test_a_firing_that_is_on_record_never_comes_again(clockwork: Clockwork) -> None:
    """Removed and made anew inside the same minute; the IDs of the tasks would differ."""
    clockwork.schedule(task={"type": "trial", "task_id": "one:{{ due_at }}"})
    clockwork.go_on(31)
    clockwork.firing.fire()
    clockwork.board.schedules.remove("daily", BY)
    clockwork.go_on(-40)
    clockwork.schedule(task={"type": "trial", "task_id": "two:{{ due_at }}"})
    clockwork.go_on(40)
    assert clockwork.firing.fire() == 0
    assert clockwork.task_ids() == ["one:2027-03-01T09:00:00Z"]
    assert clockwork.next_at() == datetime(2027, 3, 2, 9, 0, tzinfo=UTC)


def test_after_a_change_only_the_new_time_fires(clockwork: Clockwork) -> None:
    clockwork.schedule()
    changed = clockwork.edit(version=1, cron="30 9 * * *")
    assert (changed["version"], changed["next_at"]) == (2, datetime(2027, 3, 1, 9, 30, tzinfo=UTC))
    clockwork.go_on(31)
    assert clockwork.firing.fire() == 0
    clockwork.go_on(30 * MINUTE)
    assert clockwork.firing.fire() == 1
    assert [due for due, _ in clockwork.fired()] == ["01 09:30"]


def test_a_change_between_reading_and_writing_wins(clockwork: Clockwork) -> None:
    clockwork.schedule()
    clockwork.go_on(31)
    firing = clockwork.firing
    with clockwork.board.db.read() as connection:
        row = connection.execute(select(schedules)).mappings().one()
        moment = read_now(connection)
    clockwork.edit(version=1, cron="30 9 * * *")
    assert firing._fire(row, moment) == 0
    assert clockwork.fired() == []
    assert clockwork.task_ids() == []


def test_paused_does_not_fire_and_resumed_begins_anew(clockwork: Clockwork) -> None:
    clockwork.schedule(cron="0 * * * *", catch_up="all")
    assert clockwork.edit(version=1, paused=True)["next_at"] is None
    clockwork.go_on(5 * HOUR)
    assert clockwork.firing.fire() == 0
    assert clockwork.edit(version=2, paused=False)["next_at"] == datetime(2027, 3, 1, 14, 0, tzinfo=UTC)
    clockwork.go_on(31)
    assert clockwork.firing.fire() == 1
    assert [due for due, _ in clockwork.fired()] == ["01 14:00"]


@pytest.mark.parametrize(
    ("catch_up", "with_task"),
    [
        ("skip", []),
        ("one", ["01 13:00"]),
        ("all", ["01 09:00", "01 10:00", "01 11:00", "01 12:00", "01 13:00"]),
    ],
)
def test_what_was_missed_is_caught_up_as_the_schedule_says(
    clockwork: Clockwork, catch_up: str, with_task: list[str]
) -> None:
    clockwork.schedule(cron="0 * * * *", catch_up=catch_up)
    clockwork.go_on(4 * HOUR + 10 * MINUTE)
    assert clockwork.firing.fire() == len(with_task)
    assert [due for due, task in clockwork.fired() if task] == with_task
    assert clockwork.next_at() == datetime(2027, 3, 1, 14, 0, tzinfo=UTC)
    left_out = [due for due, task in clockwork.fired() if not task]
    assert left_out == {"skip": ["01 13:00"], "one": ["01 12:00"], "all": []}[catch_up]
    if left_out:
        assert any(note and note.startswith("Missed") for note in clockwork.notes())


@pytest.mark.parametrize("catch_up", ["skip", "one", "all"])
def test_late_by_a_change_of_leaders_is_not_missed(clockwork: Clockwork, catch_up: str) -> None:
    clockwork.schedule(catch_up=catch_up)
    clockwork.go_on(30 + 20)
    assert clockwork.firing.fire() == 1
    assert clockwork.notes() == [None]


def test_of_very_many_missed_ones_only_the_last_are_caught_up(clockwork: Clockwork) -> None:
    clockwork.schedule(cron="* * * * *", catch_up="all")
    clockwork.go_on(300 * DAY)
    assert clockwork.firing.fire() == MOST_CAUGHT_UP
    assert clockwork.firing.fire() == 0
    assert len(clockwork.task_ids()) == MOST_CAUGHT_UP


def test_a_night_without_half_past_two_and_one_with_two_of_them(clockwork: Clockwork) -> None:
    """Berlin loses the hour on 28 March 2027 and has it twice on 31 October."""
    clockwork.go_to(datetime(2027, 3, 27, 12, tzinfo=UTC))
    clockwork.schedule(cron="30 2 * * *", zone="Europe/Berlin")
    for _ in range(48):
        clockwork.go_on(HOUR / 2)
        clockwork.firing.fire()
    assert [due for due, _ in clockwork.fired()] == ["28 01:00"]
    row = clockwork.edit(version=1, paused=True)
    clockwork.go_to(datetime(2027, 10, 30, 12, tzinfo=UTC))
    clockwork.edit(version=row["version"], paused=False)
    for _ in range(48):
        clockwork.go_on(HOUR / 2)
        clockwork.firing.fire()
    assert [due for due, _ in clockwork.fired()] == ["28 01:00", "31 00:30"]


def test_a_schedule_whose_task_is_refused_says_so_and_goes_on(clockwork: Clockwork) -> None:
    """Its type became stricter; another schedule is not held up."""
    clockwork.schedule("broken")
    clockwork.schedule("fine", task={"type": "trial", "payload": {"must": 1}})
    strict = {
        "name": "trial",
        "handler": {"use": "echo"},
        "payload_schema": {"type": "object", "required": ["must"]},
    }
    board = clockwork.board
    with board.db.write() as tx:
        apply(tx, {"types": [strict]}, handlers=board.handlers, vault=board.vault, author="key:test")
    clockwork.go_on(31)
    assert clockwork.firing.fire() == 1
    assert clockwork.task_ids() == ["schedule:fine:2027-03-01T09:00:00Z"]
    assert [note for note in clockwork.notes() if note and "must" in note]
    assert clockwork.next_at("broken") == datetime(2027, 3, 2, 9, 0, tzinfo=UTC)
    assert clockwork.firing.fire() == 0


def test_a_task_that_exists_is_not_made_again_and_the_firing_says_so(clockwork: Clockwork) -> None:
    clockwork.schedule("one", task={"type": "trial", "task_id": "day:{{ today }}"})
    clockwork.schedule("two", task={"type": "trial", "task_id": "day:{{ today }}", "on_duplicate": "reject"})
    clockwork.go_on(31)
    assert clockwork.firing.fire() == 1
    assert clockwork.task_ids() == ["day:2027-03-01"]
    assert [note for note in clockwork.notes() if note and "exists already" in note]


def test_the_record_is_kept_for_a_while_only(clockwork: Clockwork) -> None:
    clockwork.schedule()
    clockwork.go_on(31)
    clockwork.firing.fire()
    clockwork.go_on((KEPT_DAYS - 1) * DAY)
    clockwork.firing.forget()
    assert len(clockwork.fired()) == 1
    clockwork.go_on(2 * DAY)
    clockwork.firing.forget()
    with clockwork.board.db.read() as connection:
        assert connection.execute(select(func.count()).select_from(firings)).scalar_one() == 0
