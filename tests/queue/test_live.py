"""Settings that change while the board runs: windows of the day, and who changed what."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError
from sqlalchemy import select

from board.db.engine import Database
from board.queue import live
from board.queue.live import QueueRules, Window
from board.queue.models import changes

NIGHT = Window.model_validate({"from": "22:00", "to": "06:00", "days": ["Fri"], "weights": [1, 1, 1, 9]})
USUAL = [16, 5, 2, 1]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "inside"),
    [
        ("2026-12-04T22:00", True),  # a Friday
        ("2026-12-04T21:59", False),
        ("2026-12-05T05:59", True),  # the night that began on Friday
        ("2026-12-05T06:00", False),
        ("2026-12-05T23:00", False),  # Saturday's night is not meant
        ("2026-12-04T05:00", False),  # nor Thursday's
    ],
)
def test_a_window_over_midnight_belongs_to_the_day_it_begins(moment: str, inside: bool) -> None:
    weights = QueueRules(windows=[NIGHT]).weights_at(at(moment), "UTC", USUAL)
    assert list(weights) == ([1, 1, 1, 9] if inside else USUAL)


def test_windows_are_read_in_the_boards_zone() -> None:
    rules = QueueRules(windows=[NIGHT], weights=[4, 3, 2, 1])
    assert list(rules.weights_at(at("2026-12-04T14:30"), "Asia/Shanghai", USUAL)) == [1, 1, 1, 9]
    assert list(rules.weights_at(at("2026-12-04T14:30"), "UTC", USUAL)) == [4, 3, 2, 1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"from": "25:00", "to": "06:00", "weights": USUAL},
        {"from": "22:00", "to": "06:00", "weights": [1, 2, 3]},
        {"from": "22:00", "to": "06:00", "weights": USUAL, "days": ["Friday"]},
        {"from": "22:00", "to": "06:00", "weights": [0, 1, 1, 1]},
    ],
)
def test_a_wrong_window_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Window.model_validate(wrong)


def test_every_change_is_kept_with_its_author(database_url: str) -> None:
    db = Database(database_url)
    try:
        with db.write() as tx:
            live.change(tx, "key:ops", lambda rules: rules.model_copy(update={"paused": True}), note="Moving house.")
        with db.write() as tx:  # the same again changes nothing, and is no change
            live.change(tx, "key:ops", lambda rules: rules.model_copy(update={"paused": True}))
        with db.read() as connection:
            assert live.read(connection).paused is True
            [kept] = connection.execute(select(changes)).mappings()
        assert (kept["actor"], kept["note"]) == ("key:ops", "Moving house.")
        assert (kept["before"].get("paused", False), kept["after"]["paused"]) == (False, True)
    finally:
        db.close()
