"""Shares, and what they may be in truth."""

import pytest

from board.proportions import share, wilson


# Checked against R: prop.test(x, n, correct = FALSE)$conf.int
@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [(1, 10, 0.0179, 0.4042), (0, 20, 0.0, 0.1611), (20, 20, 0.8389, 1.0), (50, 100, 0.4038, 0.5962)],
)
def test_the_interval_of_wilson(hits: int, trials: int, low: float, high: float) -> None:
    found = wilson(hits, trials)
    assert found == (pytest.approx(low, abs=5e-4), pytest.approx(high, abs=5e-4))


def test_nothing_says_nothing() -> None:
    assert (wilson(0, 0), share(0, 0)) == (None, None)
    assert share(1, 4) == 0.25
