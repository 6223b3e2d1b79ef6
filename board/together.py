"""What is asked for at the same time is done in one go: one commit serves many, and who is alone waits for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Kept(asyncio.Future[Result]):
    """Who is cancelled while he waits for it hears of that once it is there."""

    def cancel(self, msg: Any = None) -> bool:
        return False


class Together(Generic[Item, Result]):
    """Collects what comes while the last batch is being done. No clock: under load batches grow by themselves.

    do: called in a thread, one call at a time, with up to `most` items; answers for each, in their order, with a result
    or an exception. urgency: who goes first when more than `most` wait, the smallest number. gather: for so many
    seconds the next batch is waited for after one of several: who was answered then joins those who came meanwhile.
    """

    def __init__(
        self,
        do: Callable[[Sequence[Item]], Sequence[Result | Exception]],
        *,
        most: int,
        urgency: Callable[[Item], Any] = lambda _: 0,
        gather: float = 0.0,
    ) -> None:
        self._do, self._most, self._urgency, self._gather = do, most, urgency, gather
        self._waiting: list[tuple[Item, Callable[[Result | Exception], None]]] = []
        self._doing: asyncio.Task[None] | None = None

    async def ask(self, item: Item) -> Result:
        """The result for this item. It is done to its end also when who asks is cancelled, who hears of that then."""
        answer: asyncio.Future[Result] = _Kept(loop=asyncio.get_running_loop())
        self.hand_in(item, partial(_answer, answer))
        try:
            return await answer
        except asyncio.CancelledError:
            if answer.done():
                answer.exception()  # has been seen
            raise

    def hand_in(self, item: Item, then: Callable[[Result | Exception], None]) -> None:
        """The same for who does not wait: `then` is called with the result on the loop, and must not raise."""
        self._waiting.append((item, then))
        if self._doing is None:
            self._doing = asyncio.create_task(self._work())

    async def all_done(self) -> None:
        """Wait until nothing is left to do."""
        while self._doing is not None:
            await asyncio.wait({self._doing})

    async def _work(self) -> None:
        try:
            await asyncio.sleep(0)  # whoever is ready in this round of the loop comes along
            while self._waiting:
                self._waiting.sort(key=lambda it: self._urgency(it[0]))
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                for (_, then), result in zip(batch, await self._results([item for item, _ in batch]), strict=True):
                    then(result)
                if self._gather and len(batch) > 1 and len(self._waiting) < self._most:
                    await asyncio.sleep(self._gather)
        finally:
            self._doing = None

    async def _results(self, items: Sequence[Item]) -> Sequence[Result | Exception]:
        try:
            return await asyncio.to_thread(self._do, items)
        except Exception as error:
            return [error] * len(items)


def _answer(answer: asyncio.Future[Result], result: Result | Exception) -> None:
    if isinstance(result, Exception):
        answer.set_exception(result)
    else:
        answer.set_result(result)
