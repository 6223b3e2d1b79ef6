"""How many tasks a worker claims beyond its slots: as many as it will have begun before anybody notices.

Work that ends at once is not held up by the number of slots but by what each claim and each commit costs. Of a type
whose last attempts took no time, more is claimed than there are slots. It waits in this process for a moment; no more
runs at once than the slots allow.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from sqlalchemy import RowMapping

from board.ports import Outcome, Success

# Attempts that take no longer, in seconds, take no time. It is the mean of about the last eight, to which none adds
# more than what alone ends it: one may have been held up by another thread or a busy machine.
SWIFT_SECONDS = 0.001
MEAN_OF = 8
# So many more at most: together they take a fifth of a second, by which a rush order that needs all slots could come
# later, or another worker could have begun them. More would gain little, as with board.worker.run.ENDINGS_AT_ONCE.
MOST_AHEAD = 200


class Ahead:
    """The memory of one worker. slots: how many it has; swift: seconds that count as no time; most: to claim beyond."""

    def __init__(self, slots: int, swift: float = SWIFT_SECONDS, most: int = MOST_AHEAD) -> None:
        self.most = 0  # may be claimed beyond the slots now
        self._slots, self._swift, self._most = slots, swift, most
        self._means: dict[Hashable, float] = {}

    def swift(self, row: RowMapping) -> bool:
        """Whether a task is expected to take no time: row of `tasks`, also one that is not claimed yet."""
        mean = self._means.get(_kind(row))
        return mean is not None and mean < self._swift

    def learn(self, row: RowMapping, seconds: float, outcome: Outcome | None) -> None:
        """An attempt took so long. What failed at once may take its time when it succeeds."""
        kind = _kind(row)
        if isinstance(outcome, Success):
            seconds = min(seconds, MEAN_OF * self._swift)
            mean = self._means.setdefault(kind, seconds)
            self._means[kind] = mean + (seconds - mean) / MEAN_OF
        else:
            self._means.pop(kind, None)

    def claimed(self, rows: Sequence[RowMapping], asked: int) -> None:
        """So much was claimed, of so many asked for. It is doubled while nothing else comes, and ends with the first
        task of another kind: what is claimed beyond the slots must not change whose turn it is."""
        if not all(map(self.swift, rows)):
            self.most = 0
        elif rows and len(rows) >= asked:
            self.most = min(self._most, max(self._slots, 2 * self.most))


def _kind(row: RowMapping) -> Hashable:
    return row["type"], row["type_version"], row["phase"]
