"""Work that may be over before it has waited for anything."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class Begun(Generic[Result]):
    """Begins a coroutine in the running asyncio task, up to the first point at which it waits.

    Where it is over by then (`over`), `result` is what came of it: no task, no clock and nothing else that only long
    work needs was made for it. Else it waits to be awaited, by this very asyncio task. What it raises comes from where
    it was begun or awaited. Context variables that it sets are its own, as if it had a task of its own.
    """

    __slots__ = ("_context", "_waits_for", "_work", "over", "result")

    result: Result

    def __init__(self, work: Coroutine[Any, Any, Result]) -> None:
        self._work, self._context = work, copy_context()
        self.over = False
        try:
            self._waits_for = self._context.run(work.send, None)
        except StopIteration as end:
            self.over, self.result = True, end.value

    def __await__(self) -> Generator[Any, Any, Result]:
        work, waits_for = self._work, self._waits_for
        while True:  # as `await` does it
            try:
                came = yield waits_for
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:
                go_on: Callable[[], Any] = partial(work.throw, error)
            else:
                go_on = partial(work.send, came)
            try:
                waits_for = self._context.run(go_on)
            except StopIteration as end:
                result: Result = end.value
                return result
