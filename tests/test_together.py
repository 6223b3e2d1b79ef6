"""What is asked for at the same time is done in one go."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from board.together import Together


class Work:
    """Remembers its batches; waits inside the first one until it is let go on."""

    def __init__(self, *, held: bool = False) -> None:
        self.batches: list[list[int]] = []
        self.begun = threading.Event()
        self.go_on = threading.Event()
        if not held:
            self.go_on.set()

    def __call__(self, items: Sequence[int]) -> list[int | Exception]:
        self.batches.append(list(items))
        self.begun.set()
        assert self.go_on.wait(10)
        return [ValueError(f"no {item}") if item < 0 else item * 10 for item in items]


async def begun(work: Work) -> None:
    await asyncio.to_thread(work.begun.wait, 10)


async def test_what_comes_at_the_same_time_is_one_batch() -> None:
    work = Work()
    together: Together[int, int] = Together(work, most=10)
    assert await asyncio.gather(*(together.ask(n) for n in (1, 2, 3))) == [10, 20, 30]
    assert work.batches == [[1, 2, 3]]


async def test_who_is_alone_waits_for_nobody_and_who_comes_meanwhile_is_the_next_batch() -> None:
    work = Work(held=True)
    together: Together[int, int] = Together(work, most=10)
    first = asyncio.create_task(together.ask(1))
    await begun(work)
    rest = [asyncio.create_task(together.ask(n)) for n in (2, 3)]
    await asyncio.sleep(0)
    work.go_on.set()
    assert await asyncio.gather(first, *rest) == [10, 20, 30]
    assert work.batches == [[1], [2, 3]]


async def test_batches_have_an_end_and_the_urgent_go_first() -> None:
    work = Work()
    together: Together[int, int] = Together(work, most=2, urgency=lambda item: item % 10)
    assert await asyncio.gather(*(together.ask(n) for n in (13, 23, 10, 33))) == [130, 230, 100, 330]
    assert work.batches == [[10, 13], [23, 33]]


async def test_an_error_is_one_items_own() -> None:
    together: Together[int, int] = Together(Work(), most=10)
    good, bad = await asyncio.gather(together.ask(1), together.ask(-1), return_exceptions=True)
    assert good == 10
    assert isinstance(bad, ValueError)


async def test_an_error_of_the_whole_is_everybodys_and_the_next_batch_goes_on() -> None:
    def broken(items: Sequence[int]) -> list[int | Exception]:
        if 0 in items:
            raise OSError("away")
        return list(items)

    together: Together[int, int] = Together(broken, most=10)
    answers = await asyncio.gather(together.ask(0), together.ask(1), return_exceptions=True)
    assert [type(answer) for answer in answers] == [OSError, OSError]
    assert await together.ask(5) == 5


async def test_who_is_cancelled_hears_of_it_when_it_is_done() -> None:
    work = Work(held=True)
    together: Together[int, int] = Together(work, most=10)
    asked = asyncio.create_task(together.ask(1))
    await begun(work)
    asked.cancel()
    await asyncio.sleep(0)
    assert not asked.done()
    work.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert work.batches == [[1]]


async def test_who_hands_in_waits_for_nothing_and_is_told() -> None:
    work = Work(held=True)
    together: Together[int, int] = Together(work, most=10)
    told: list[int | Exception] = []
    together.hand_in(1, told.append)
    await begun(work)
    together.hand_in(-2, told.append)
    together.hand_in(3, told.append)
    assert told == []
    work.go_on.set()
    await together.all_done()
    assert [it if isinstance(it, int) else str(it) for it in told] == [10, "no -2", 30]
    assert work.batches == [[1], [-2, 3]]


async def test_who_was_answered_joins_those_who_came_meanwhile() -> None:
    """Else two halves of the callers would take turns for ever, each with batches of its own."""
    work = Work(held=True)
    together: Together[int, int] = Together(work, most=10, gather=0.05)

    async def twice(number: int) -> None:
        await together.ask(number)
        await together.ask(number + 10)

    first = [asyncio.create_task(twice(n)) for n in (1, 2)]
    await begun(work)
    rest = [asyncio.create_task(together.ask(n)) for n in (3, 4)]
    await asyncio.sleep(0)
    work.go_on.set()
    await asyncio.gather(*first, *rest)
    assert [sorted(batch) for batch in work.batches] == [[1, 2], [3, 4, 11, 12]]


async def test_what_fills_a_batch_is_not_kept_waiting() -> None:
    work = Work(held=True)
    together: Together[int, int] = Together(work, most=2, gather=3600.0)
    first = [asyncio.create_task(together.ask(n)) for n in (1, 2)]
    await begun(work)
    rest = [asyncio.create_task(together.ask(n)) for n in (3, 4)]
    await asyncio.sleep(0)
    work.go_on.set()
    assert await asyncio.wait_for(asyncio.gather(*first, *rest), 10) == [10, 20, 30, 40]
