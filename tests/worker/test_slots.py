"""Slots: P0 fills the reserved ones first, the other lanes never take the last."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from board.worker.slots import Slots


def test_the_other_lanes_leave_one_free() -> None:
    slots = Slots(3, 1)
    assert slots.free() == (3, 2)
    slots.hold("a", urgent=False)
    slots.hold("b", urgent=False)
    assert slots.free() == (1, 0)
    slots.hold("rush", urgent=True)
    assert slots.free() == (0, 0)
    slots.release("rush")
    slots.release("a")
    assert slots.free() == (2, 1)


def test_a_single_slot_is_never_kept_back() -> None:
    assert Slots(1, 1).free() == (1, 1)
    assert Slots(2, 5).reserved == 1


@given(size=st.integers(1, 20), reserved=st.integers(0, 20), held=st.lists(st.booleans(), max_size=20))
def test_free_never_goes_wrong(size: int, reserved: int, held: list[bool]) -> None:
    slots = Slots(size, reserved)
    for number, urgent in enumerate(held):
        free, rest = slots.free()
        if (urgent and free) or (not urgent and rest):
            slots.hold(number, urgent=urgent)
    free, rest = slots.free()
    assert 0 <= rest <= free <= size
    usual = sum(1 for number, urgent in enumerate(held) if not urgent and number in slots._urgent)
    assert usual <= size - slots.reserved


def test_a_spare_one_is_for_what_comes_after_the_slots_are_full() -> None:
    slots = Slots(2, 1, spare=1)
    assert slots.free_spare() == 0, "there is a slot"
    slots.hold("a", urgent=False)
    assert (slots.free(), slots.free_spare()) == ((1, 0), 1)
    slots.hold("b", urgent=False)
    assert (slots.free(), slots.free_spare()) == ((1, 0), 0), "the one of P0 stays free"
    slots.hold("rush", urgent=True)
    assert slots.free() == (0, 0)
    slots.release("a")
    assert (slots.free(), slots.free_spare()) == ((0, 0), 1)
    slots.release("b")
    assert (slots.free(), slots.free_spare()) == ((1, 1), 0)


def test_no_spare_one_beside_rush_orders_that_fill_all() -> None:
    slots = Slots(2, 1, spare=1)
    slots.hold("rush", urgent=True)
    slots.hold("other rush", urgent=True)
    assert (slots.free(), slots.free_spare()) == ((0, 0), 0)
