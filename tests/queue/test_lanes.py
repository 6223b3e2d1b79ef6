"""Shares of the lanes: exact over a round, urgent first inside it, and nobody waits for ever."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from board.queue.lanes import DEFAULT_WEIGHTS, LANES, Shares
from board.settings import Settings

ENDLESS = 10**9
FULL = dict.fromkeys(LANES, ENDLESS)
ROUND = sum(DEFAULT_WEIGHTS)


def order(shares: Shares, picks: int, ready: dict[int, int] | None = None) -> list[int]:
    """The lanes in the order in which single slots were given out."""
    return [next(iter(shares.share(1, 1, ready or FULL))) for _ in range(picks)]


def test_over_one_round_each_lane_gets_exactly_its_weight() -> None:
    assert Counter(order(Shares(), ROUND)) == dict(zip(LANES, DEFAULT_WEIGHTS, strict=True))


@given(batches=st.lists(st.integers(1, 40), min_size=60, max_size=60))
def test_shares_hold_within_5_percent_however_slots_come_free(batches: list[int]) -> None:
    shares, got = Shares(), Counter[int]()
    for slots in batches:
        got.update(shares.share(slots, slots, FULL))
    total = sum(batches)
    for lane, weight in zip(LANES, DEFAULT_WEIGHTS, strict=True):
        # A round that has only begun has given its first turns to the urgent lanes.
        assert abs(got[lane] - total * weight / ROUND) <= max(weight, 0.05 * total * weight / ROUND)


@given(weights=st.lists(st.integers(1, 50), min_size=4, max_size=4))
def test_no_lane_waits_longer_than_one_round(weights: list[int]) -> None:
    """The bound of docs/queue.md: the head of a lane is picked within one round of picks."""
    picked = order(Shares(weights), 4 * sum(weights))
    for lane in LANES:
        places = [-1] + [place for place, got in enumerate(picked) if got == lane]
        assert max(b - a for a, b in itertools.pairwise(places)) <= sum(weights)


def test_a_burst_runs_in_the_order_of_its_priorities() -> None:
    shares, waiting, order = Shares(), {0: 3, 1: 4, 2: 2, 3: 1}, []
    while any(waiting.values()):
        [(lane, _)] = shares.share(1, 1, waiting).items()
        waiting[lane] -= 1
        order.append(lane)
    assert order == [0, 0, 0, 1, 1, 1, 1, 2, 2, 3]


def test_after_a_quiet_moment_a_rush_order_comes_first_again() -> None:
    shares = Shares()
    for _ in range(16):
        shares.share(1, 1, {0: 5, 3: 5})  # P0 has spent its turns of this round
    shares.share(40, 40, {0: 5, 3: 5})  # and then all that waited is taken
    assert shares.share(1, 1, {0: 1, 1: 1, 3: 1}) == {0: 1}


def test_an_empty_lane_gives_its_share_away_and_saves_nothing_up() -> None:
    shares = Shares()
    assert Counter(order(shares, 80, {1: ENDLESS, 2: ENDLESS, 3: ENDLESS})) == {1: 50, 2: 20, 3: 10}
    order(shares, ROUND)  # the round that was under way
    assert Counter(order(shares, ROUND)) == dict(zip(LANES, DEFAULT_WEIGHTS, strict=True))


@given(
    slots=st.integers(0, 60),
    rest=st.integers(0, 60),
    ready=st.dictionaries(st.sampled_from(LANES), st.integers(0, 50)),
)
def test_all_slots_are_used_and_never_more_than_wait(slots: int, rest: int, ready: dict[int, int]) -> None:
    given_out = Shares().share(slots, rest, ready)
    assert all(0 < number <= ready[lane] for lane, number in given_out.items())
    usual = sum(number for lane, number in given_out.items() if lane != 0)
    assert usual <= rest
    possible = min(slots, ready.get(0, 0) + min(rest, sum(n for lane, n in ready.items() if lane != 0)))
    assert sum(given_out.values()) == possible


def test_the_reserved_slot_goes_to_p0_only() -> None:
    assert Shares().share(1, 0, {1: 5, 2: 5}) == {}
    assert Shares().share(3, 2, {0: 1, 1: 5}) == {0: 1, 1: 2}


def test_the_slot_kept_free_starts_no_new_round() -> None:
    """Its keeper asks for one slot more than the others may take; what still waits keeps its place in the round."""
    shares, got = Shares(), Counter[int]()
    for _ in range(80):
        got.update(shares.share(2, 1, {1: ENDLESS, 2: ENDLESS, 3: ENDLESS}))
    assert got == {1: 50, 2: 20, 3: 10}


@pytest.mark.parametrize("urgent_turns", [1, 5, 16, 40])
def test_short_rush_orders_in_their_own_slot_take_no_turn_from_the_others(urgent_turns: int) -> None:
    """So many P0 tasks run through the slot kept for them while one other slot comes free: all lanes get their turns,
    and P0, which has had its share already, gets what is left of it."""
    shares, got, others = Shares(), Counter[int](), Counter[int]()
    for _ in range(20 * ROUND):
        for _ in range(urgent_turns):
            got.update(shares.share(1, 0, FULL))
        taken = shares.share(1, 1, FULL)
        got.update(taken)
        others.update({lane: number for lane, number in taken.items() if lane})
    for lane in (1, 2, 3):
        assert others[lane] >= sum(others.values()) * DEFAULT_WEIGHTS[lane] / 8 - DEFAULT_WEIGHTS[lane]
    assert sum(others.values()) >= 20 * ROUND * 8 / ROUND - 8
    assert got[0] >= got.total() * 16 / ROUND - 16


@pytest.mark.parametrize("weights", [(1, 2, 3), (0, 1, 1, 1), (1, 1, 1, -1)])
def test_weights_must_be_four_positive_numbers(weights: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="four weights"):
        Shares(weights)


def test_new_weights_count_from_the_next_pick_on() -> None:
    shares = Shares()
    order(shares, 10)
    shares.set_weights((1, 1, 1, 1))
    shares.set_weights((1, 1, 1, 1))  # the same again starts nothing anew
    assert Counter(order(shares, 400))[3] == pytest.approx(100, abs=2)


@pytest.mark.parametrize(
    ("given_settings", "kept"),
    [
        ({}, 1),
        ({"concurrency": 4}, 1),
        ({"concurrency": 3}, 0),
        ({"concurrency": 2, "reserved_p0_slots": 1}, 1),
        ({"reserved_p0_slots": 0}, 0),
    ],
)
def test_a_small_worker_keeps_a_slot_only_when_asked(given_settings: dict[str, int], kept: int) -> None:
    assert Settings(**given_settings).kept_for_p0 == kept  # type: ignore[arg-type]
