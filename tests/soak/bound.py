"""How long a task can wait at most: the formula of docs/queue.md, as the tests hold the queue to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from board.queue.lanes import DEFAULT_WEIGHTS, LANES
from board.upkeep.ageing import BATCH
from board.upkeep.keeper import AGEING_SECONDS


@dataclass(frozen=True, slots=True)
class Bound:
    """slots, reserved: of one worker that takes every lane (others only help). service: seconds that a task runs at
    most, with all that lies between two tasks in one slot. ageing_after: as BOARD_AGEING_AFTER, in seconds."""

    slots: int
    reserved: int
    service: float
    ageing_after: float = 300.0
    weights: tuple[int, ...] = DEFAULT_WEIGHTS

    def turns(self, lane: int, before: int) -> int:
        """So many turns, of all lanes together, until a task has its own at the latest; `before` are before it in its
        lane. At worst its lane has just had its last turn of a round, and of the following ones it gets its weight."""
        weight, round_ = self.weights[lane], sum(self.weights)
        return round_ * (before // weight) + (round_ - weight) + before % weight + 1

    def in_lane(self, lane: int, before: int) -> float:
        """Seconds that a task waits at most while nothing comes before it: each slot that all lanes share comes free
        once in `service` seconds, and gives a turn."""
        return self.service * math.ceil(self.turns(lane, before) / (self.slots - self.reserved))

    def rise(self, before: int) -> float:
        """Seconds until a task has risen by a lane at the latest, if it still waits then: its time, the next sweep, and
        the sweeps that are full of older ones."""
        return self.ageing_after + AGEING_SECONDS * (1 + before // BATCH)

    def wait(self, lane: int, older: tuple[int, ...]) -> float:
        """The most that a task of `lane` waits. older: the tasks of P0 to P3 that were there before it.

        Older ones from below may rise and come before it, younger ones never; so `before` is counted from its own lane
        down. P0 stays alone.
        """
        if lane == 0:
            return self.in_lane(0, older[0])
        before = sum(older[lane:])
        stays = self.in_lane(lane, before)
        if lane == 1 or stays <= self.ageing_after:
            return stays
        return self.rise(before) + self.wait(lane - 1, older)

    def table(self) -> str:
        """For people: the bound of each lane at a few backlogs."""
        lines = [
            f"{self.slots} slots ({self.reserved} for P0 alone), a task runs {self.service:g} s, "
            f"ageing after {self.ageing_after:g} s, weights {':'.join(map(str, self.weights))}",
            "lane   alone   100 before   1,000 before",
        ]
        for lane in LANES:
            waits = []
            for before in (0, 100, 1000):
                older = tuple(before if it == lane else 0 for it in LANES)
                waits.append(self.wait(lane, older))
            lines.append(f"P{lane}   {waits[0]:7.1f} s   {waits[1]:8.1f} s   {waits[2]:8.1f} s")
        return "\n".join(lines)
