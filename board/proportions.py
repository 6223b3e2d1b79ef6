"""What figures on shares are made with, wherever they are shown: the one place for these formulas."""

from __future__ import annotations

from math import sqrt

_Z = 1.959964  # of the normal distribution: 95 %


def share(part: int, whole: int) -> float | None:
    """From 0 to 1; None of nothing."""
    return part / whole if whole else None


def wilson(hits: int, trials: int) -> tuple[float, float] | None:
    """Between what shares the true one lies, 95 % of the time; None of no trials.

    Wilson's score interval: right for few trials and for shares near 0 and 1 too, where hits/trials ± an error is not.
    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    if not trials:
        return None
    p, z2 = hits / trials, _Z * _Z
    middle = p + z2 / (2 * trials)
    reach = _Z * sqrt(p * (1 - p) / trials + z2 / (4 * trials * trials))
    scale = 1 + z2 / trials
    return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)
