"""Percentiles by nearest rank, Wilson's interval, and when a change is told."""

import pytest

from board.reports.figures import change, nearest_rank, spread_of


@pytest.mark.parametrize(
    ("n", "percent", "rank"),
    [(1, 50, 1), (2, 50, 1), (3, 50, 2), (10, 90, 9), (11, 90, 10), (20, 90, 18), (19, 90, 18)],
)
def test_nearest_rank(n: int, percent: int, rank: int) -> None:
    assert nearest_rank(list(range(n, 0, -1)), percent) == rank


def test_of_few_no_p90() -> None:
    assert spread_of([3.0] * 9)["p90"] is None
    assert spread_of([3.0] * 10)["p90"] == 3.0
    assert spread_of([]) == {"n": 0, "p50": None, "p90": None, "max": None}


def test_change() -> None:
    assert change(6, 4, more_is_better=True).percent is None  # of four, 50 % says nothing
    assert change(6, 5, more_is_better=False).percent == 20.0
    assert change(6, 5, more_is_better=False).better is False
    assert change(5, 5, more_is_better=True).better is None
    assert change(None, 5, more_is_better=True).difference is None
