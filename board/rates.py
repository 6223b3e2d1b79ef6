"""Rates such as `60/min`, and the token bucket by which they are kept. Pure: no database, no clock."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RATE = re.compile(r"^\s*(\d{1,9})\s*/\s*(s|min|h|d)\s*$")
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
# A sum of refills that should be a whole token may fall short of it by the error of floating point.
_ERROR = 1e-6


@dataclass(frozen=True, slots=True)
class Rate:
    """number: how many; seconds: in which time."""

    number: int
    seconds: float


def parse_rate(text: str) -> Rate:
    """The rate of a text such as `60/min`; units are s, min, h and d. ValueError when it is none."""
    match = _RATE.match(text)
    if not match:
        raise ValueError(f"“{text[:40]}” is not a rate; write a whole number and /s, /min, /h or /d, such as 60/min")
    if int(match[1]) < 1:
        raise ValueError("must be at least 1; to stop work of a type, pause it")
    return Rate(int(match[1]), _SECONDS[match[2]])


@dataclass(frozen=True, slots=True)
class Bucket:
    """Tokens flow in at `per_second`, up to `capacity`; each thing that is counted takes one."""

    capacity: float
    per_second: float

    def level(self, tokens: float | None, seconds: float) -> float:
        """How many there are `seconds` after there were `tokens` (None: never looked at, so it is full)."""
        if tokens is None:
            return self.capacity
        return min(self.capacity, tokens + max(0.0, seconds) * self.per_second)

    def wait(self, level: float, wanted: int = 1) -> float:
        """Seconds until `wanted` are there; never, by `wanted` beyond the capacity, is infinite."""
        if wanted > self.capacity:
            return float("inf")
        return max(0.0, (wanted - level) / self.per_second)


def whole(level: float) -> int:
    return int(level + _ERROR)


def spread(rate: Rate) -> Bucket:
    """For starts of work: in no window of the rate's length more than its number, spread over it.

    A twentieth may start at once, at least one. The inflow is less by the same, so that burst and inflow together never
    exceed the number; for fewer than 40 it is the number itself.
    """
    burst = max(1, rate.number // 20)
    return Bucket(burst, (rate.number - burst + 1) / rate.seconds)


def burst(rate: Rate) -> Bucket:
    """For what callers send: the whole number may come at once, as programs do; then it flows in evenly."""
    return Bucket(rate.number, rate.number / rate.seconds)
