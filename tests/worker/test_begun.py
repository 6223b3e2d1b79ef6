"""Work that has been begun is over at once, or is awaited like any other."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from board.worker.begun import Begun


async def at_once() -> int:
    return 1


async def after_a_while() -> int:
    await asyncio.sleep(0)
    await asyncio.sleep(0.001)
    return 2


async def test_what_does_not_wait_is_over_with_its_result() -> None:
    work = Begun(at_once())
    assert work.over
    assert work.result == 1


async def test_what_waits_is_not_over_and_gives_its_result_later() -> None:
    work = Begun(after_a_while())
    assert not work.over
    assert await work == 2


async def test_it_runs_in_the_task_that_awaits_it() -> None:
    async def who() -> tuple[Any, Any]:
        before = asyncio.current_task()
        async with asyncio.timeout(10):
            await asyncio.sleep(0)
        return before, asyncio.current_task()

    assert await Begun(who()) == (asyncio.current_task(), asyncio.current_task())


async def fail(*, later: bool) -> None:
    if later:
        await asyncio.sleep(0)
    raise ValueError("no")


@pytest.mark.parametrize("later", [False, True])
async def test_an_error_comes_through(later: bool) -> None:
    with pytest.raises(ValueError, match="no"):
        await Begun(fail(later=later))


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

    async def outer() -> str:
        return await Begun(stubborn())

    task = asyncio.create_task(outer())
    await waiting.wait()
    task.cancel()
    assert await task == "tidied up"
    assert seen == ["cancelled"]


async def test_a_clock_that_is_set_only_when_it_waits_ends_it() -> None:
    work = Begun(asyncio.Event().wait())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await work


async def test_context_variables_are_its_own_before_and_after_it_waits() -> None:
    seen: ContextVar[str] = ContextVar("seen", default="nothing")

    async def leaves_something(*, later: bool) -> str:
        token = seen.set("something")
        if later:
            await asyncio.sleep(0)
        found = seen.get()
        seen.reset(token)  # fails in another context
        seen.set("left behind")
        return found

    assert Begun(leaves_something(later=False)).result == "something"
    assert await Begun(leaves_something(later=True)) == "something"
    assert seen.get() == "nothing"
