"""The arithmetic of reports. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from board import proportions

FEW = 10  # below it a p90 says more about one task than about all, and is not shown
FEW_BEFORE = 5  # below it a change in percent is not shown


def nearest_rank(values: Sequence[float], percent: int) -> float | None:
    """The value at rank ceil(percent · n / 100) of the sorted values: one that occurred, never one in between."""
    if not values:
        return None
    return sorted(values)[-(-percent * len(values) // 100) - 1]


def share(part: int, whole: int) -> float | None:
    """As in board.proportions, with as many digits as anybody reads."""
    found = proportions.share(part, whole)
    return None if found is None else round(found, 6)


def spread(n: int, p50: float | None, p90: float | None, most: float | None = None) -> dict[str, Any]:
    """How times, in seconds, are told: with their number, and the p90 only of enough of them."""
    return {"n": n, "p50": _ms(p50), "p90": _ms(p90) if n >= FEW else None, "max": _ms(most)}


def spread_of(values: Sequence[float]) -> dict[str, Any]:
    return spread(len(values), nearest_rank(values, 50), nearest_rank(values, 90), max(values, default=None))


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(float(seconds), 3)


@dataclass(frozen=True, slots=True)
class Change:
    """From last week to this. percent: None where last week had too few. better: None where it is neither."""

    last: float | None
    difference: float | None
    percent: float | None
    better: bool | None


def change(now: float | None, last: float | None, *, more_is_better: bool, of_count: bool = True) -> Change:
    """of_count: the figure is a count, of which fewer than FEW_BEFORE give no percentage."""
    if now is None or last is None:
        return Change(last, None, None, None)
    difference = round(now - last, 6)
    enough = last >= FEW_BEFORE if of_count else last > 0
    percent = round(100 * difference / last, 1) if enough else None
    return Change(last, difference, percent, None if not difference else (difference > 0) is more_is_better)
