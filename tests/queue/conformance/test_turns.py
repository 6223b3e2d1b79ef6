"""How the lanes share the slots: the rule of docs/queue.md, whoever keeps the queue."""

from __future__ import annotations

from collections import Counter

import pytest

from board.queue.lanes import LANES
from board.queue.wanted import Scope
from board.tasks.states import Pool
from tests.queue.conftest import Hall


def lanes(names: list[str]) -> Counter[str]:
    return Counter(name[:2] for name in names)


def test_over_one_round_each_lane_gets_its_weight_one_by_one(hall: Hall) -> None:
    hall.fill(LANES, 40)
    one_round = [hall.claim()[0] for _ in range(24)]
    assert lanes(one_round) == {"P0": 16, "P1": 5, "P2": 2, "P3": 1}
    assert one_round == sorted(one_round), "urgent lanes first, and in a lane the oldest"


@pytest.mark.parametrize("slots", [5, 7, 24])
def test_and_in_batches_of_any_size(hall: Hall, slots: int) -> None:
    hall.fill(LANES, 60)
    taken: list[str] = []
    while len(taken) < 72:
        batch = hall.claim(min(slots, 72 - len(taken)))
        assert batch == sorted(batch)
        taken += batch
    assert lanes(taken) == {"P0": 48, "P1": 15, "P2": 6, "P3": 3}


def test_a_burst_runs_in_the_order_of_its_priorities(hall: Hall) -> None:
    for name in ("c1", "a1", "b1", "a2", "b2", "a3", "a4"):
        hall.put(name, lane="abc".index(name[0]) + 1)
    assert hall.all() == ["a1", "a2", "a3", "a4", "b1", "b2", "c1"]


def test_an_empty_lane_gives_its_share_away(hall: Hall) -> None:
    hall.fill((1, 3), 30)
    assert lanes([hall.claim()[0] for _ in range(24)]) == {"P1": 20, "P3": 4}
    assert lanes(hall.claim(36)) == {"P1": 10, "P3": 26}


def test_the_kept_slot_is_for_p0_alone_and_starts_no_new_round(hall: Hall) -> None:
    hall.fill((1, 2, 3), 30)
    assert hall.claim(1, rest=0) == []
    taken = [name for _ in range(16) for name in hall.claim(2, rest=1)]
    assert lanes(taken) == {"P1": 10, "P2": 4, "P3": 2}
    hall.fill((0,), 3)
    assert hall.claim(1, rest=0) == ["P0-000"]
    assert lanes(hall.claim(3, rest=1)) == {"P0": 2, "P1": 1}


def test_other_weights_count_from_the_next_claim_on(hall: Hall) -> None:
    hall.fill(LANES, 60)
    hall.claim(10)
    assert lanes(hall.claim(40, weights=(1, 1, 1, 1))) == dict.fromkeys(("P0", "P1", "P2", "P3"), 10)
    assert lanes(hall.claim(24, weights=(2, 2, 2, 18))) == {"P0": 2, "P1": 2, "P2": 2, "P3": 18}


def test_after_a_quiet_moment_a_rush_order_comes_first(hall: Hall) -> None:
    hall.fill((0, 3), 20)
    for _ in range(16):
        hall.claim()  # P0 has spent its turns of this round
    hall.claim(24)  # and then all that waited is taken
    for name, lane in (("low", 3), ("rush", 0)):
        hall.put(name, lane=lane)
    assert hall.claim() == ["rush"]


def test_a_claimer_of_some_lanes_uses_up_no_turns_of_the_others(hall: Hall) -> None:
    hall.fill((1, 3), 30)
    assert [hall.claim(scope=Scope(only_lanes=[3]))[0] for _ in range(5)] == [f"P3-{n:03}" for n in range(5)]
    assert lanes([hall.claim()[0] for _ in range(6)])["P3"] <= 1


def test_short_rush_orders_in_the_kept_slot_take_no_turn_from_the_others(hall: Hall) -> None:
    """One slot is open to all, and before each of its turns a P0 task runs in the slot that is kept for P0."""
    hall.fill(LANES, 60)
    others: list[str] = []
    for _ in range(28):
        assert lanes(hall.claim(1, rest=0)) == {"P0": 1}
        others += hall.claim(1, rest=1)
    assert {lane: number for lane, number in lanes(others).items() if lane != "P0"} == {"P1": 10, "P2": 4, "P3": 2}


def test_the_polls_of_others_do_not_begin_the_round_anew(hall: Hall) -> None:
    """An outside worker finds nothing, or empties its lane, between any two claims of a busy worker."""
    hall.fill(LANES, 24)
    hall.put(*(f"O-{number}" for number in range(5)), lane=3, home_pool="outside")
    found: list[str] = []
    for _ in range(24):
        hall.claim(scope=Scope(Pool.OUTSIDE))
        assert hall.claim(scope=Scope(only_types=["nothing of this"])) == []
        found += hall.claim()
    assert lanes(found) == {"P0": 16, "P1": 5, "P2": 2, "P3": 1}
