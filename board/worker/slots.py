"""The slots of one worker: so many tasks at a time, with some kept for P0 so that a rush order never waits for them."""

from __future__ import annotations

from collections.abc import Hashable


class Slots:
    """Who holds a slot. size: all of them; reserved: how many are for P0 alone, at most size - 1.

    spare: beyond them, for work that is soon over and prepares itself there until another one's computing is through.
    """

    def __init__(self, size: int, reserved: int, spare: int = 0) -> None:
        self.size, self.spare = size, spare
        self.reserved = max(0, min(reserved, size - 1))
        self._urgent: dict[Hashable, bool] = {}
        self._number_urgent = 0

    def hold(self, holder: Hashable, *, urgent: bool) -> None:
        self._urgent[holder] = urgent
        self._number_urgent += urgent

    def release(self, holder: Hashable) -> None:
        self._number_urgent -= self._urgent.pop(holder, False)

    @property
    def holders(self) -> frozenset[Hashable]:
        return frozenset(self._urgent)

    def free(self) -> tuple[int, int]:
        """(free for P0, how many of these the other lanes may take). P0 fills the reserved slots first."""
        urgent = self._number_urgent
        usual = min(len(self._urgent) - urgent, self.size - self.reserved)  # the rest stands in spare ones
        open_to_all = self.size - self.reserved - usual - max(0, urgent - self.reserved)
        return self.size - usual - urgent, max(0, open_to_all)

    def free_spare(self) -> int:
        """Of the spare ones; none as long as the other lanes have not filled what is theirs."""
        beyond = len(self._urgent) - self._number_urgent - (self.size - self.reserved)
        return self.spare - beyond if beyond >= 0 else 0
