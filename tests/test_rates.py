"""Rates and the buckets that keep them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from board.rates import Bucket, Rate, burst, parse_rate, spread, whole


def test_what_a_rate_is() -> None:
    assert parse_rate("60/min") == Rate(60, 60)
    assert [parse_rate(f" 5 / {unit} ").seconds for unit in ("s", "min", "h", "d")] == [1, 60, 3600, 86400]


@pytest.mark.parametrize("text", ["", "60", "60/m", "0/min", "-1/min", "1.5/s", "60/minute", "one/s", "60 per min"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"rate|at least 1"):
        parse_rate(text)


@given(
    number=st.integers(1, 500),
    pauses=st.lists(st.floats(0, 30), min_size=1, max_size=60),
    wanted=st.integers(1, 600),
)
def test_no_window_ever_holds_more_than_the_number(number: int, pauses: list[float], wanted: int) -> None:
    rate = Rate(number, 60.0)
    bucket = spread(rate)
    starts: list[float] = []
    tokens, at, moment = None, 0.0, 0.0
    for pause in pauses:
        moment += pause
        level = bucket.level(tokens, moment - at)
        for _ in range(min(wanted, whole(level))):
            level -= 1
            starts.append(moment)
        tokens, at = level, moment
    for begin in starts:
        assert sum(begin <= start < begin + 60.0 for start in starts) <= number


@given(number=st.integers(1, 10_000))
def test_what_waits_long_enough_gets_nearly_the_number(number: int) -> None:
    bucket = spread(Rate(number, 60.0))
    assert bucket.per_second * 60 >= 0.95 * number
    assert 1 <= bucket.capacity <= max(1, number / 20)
    assert bucket.wait(bucket.capacity - 1) == pytest.approx(max(0.0, (2 - bucket.capacity) / bucket.per_second))


def test_of_what_callers_send_the_whole_number_may_come_at_once() -> None:
    bucket = burst(Rate(60, 60.0))
    assert bucket == Bucket(60, 1.0)
    assert bucket.level(None, 0) == 60
    assert bucket.wait(10, 30) == 20
    assert bucket.wait(60, 61) == float("inf")
