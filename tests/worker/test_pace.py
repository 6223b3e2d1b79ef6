"""How fast a worker goes: per minute and lane, over the last five minutes and no longer."""

from board.worker.pace import Pace


class Clock:
    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_it_is_counted_over_the_last_minutes() -> None:
    clock = Clock()
    pace = Pace(clock)
    assert pace.per_minute() == [0, 0, 0, 0]
    for _ in range(120):  # one a second, each tenth of P3
        pace.note(2)
        clock.seconds += 1
        if clock.seconds % 10 == 0:
            pace.note(3)
    assert pace.per_minute() == [0, 0, 60, 6]
    clock.seconds += 180
    assert pace.per_minute() == [0, 0, 24, 2.4], "over five minutes now"
    clock.seconds += 301
    assert pace.per_minute() == [0, 0, 0, 0]


def test_the_first_second_is_not_taken_for_a_minute() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.note(0)
    clock.seconds += 0.1
    assert pace.per_minute() == [6, 0, 0, 0]
