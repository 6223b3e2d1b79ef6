"""Awaiting what may be over at once is like awaiting it, and says when it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from board.worker.begun import begun


class Told:
    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


async def at_once() -> int:
    return 1


async def after_a_while() -> int:
    await asyncio.sleep(0)
    await asyncio.sleep(0.001)
    return 2


@pytest.mark.parametrize(("work", "result", "times"), [(at_once, 1, 0), (after_a_while, 2, 1)])
async def test_the_result_and_one_word_when_it_waits(work: Any, result: int, times: int) -> None:
    told = Told()
    assert await begun(work(), told) == result
    assert told.times == times


async def test_it_runs_in_the_task_that_awaits_it() -> None:
    async def who() -> tuple[Any, Any]:
        before = asyncio.current_task()
        async with asyncio.timeout(10):
            await asyncio.sleep(0)
        return before, asyncio.current_task()

    assert await begun(who(), Told()) == (asyncio.current_task(), asyncio.current_task())


async def fail(*, later: bool) -> None:
    if later:
        await asyncio.sleep(0)
    raise ValueError("no")


@pytest.mark.parametrize("later", [False, True])
async def test_an_error_comes_through(later: bool) -> None:
    with pytest.raises(ValueError, match="no"):
        await begun(fail(later=later), Told())


async def test_a_cancellation_reaches_the_work_which_may_go_on_for_a_while() -> None:
    seen: list[str] = []
    waiting = asyncio.Event()

    async def stubborn() -> str:
        try:
            waiting.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            await asyncio.sleep(0)
            return "tidied up"
        return "never"

    async def outer(work: Coroutine[Any, Any, str]) -> str:
        return await begun(work, Told())

    task = asyncio.create_task(outer(stubborn()))
    await waiting.wait()
    task.cancel()
    assert await task == "tidied up"
    assert seen == ["cancelled"]


async def test_a_clock_set_when_it_waits_ends_it() -> None:
    limit = asyncio.timeout(None)

    def set_clock() -> None:
        limit.reschedule(asyncio.get_running_loop().time())

    with pytest.raises(TimeoutError):
        async with limit:
            await begun(asyncio.Event().wait(), set_clock)
    assert limit.expired()
