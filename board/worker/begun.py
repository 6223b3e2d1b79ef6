"""Awaiting something that may be over before it has waited for anything."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


@coroutine
def begun(work: Coroutine[Any, Any, Result], waits: Callable[[], None]) -> Generator[Any, Any, Result]:
    """The result of `work`, in this very task. waits: called once, when it first waits for something: what only long
    work needs, such as a clock, is not made for work that ends at once."""
    try:
        waits_for = work.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    waits()
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
            waits_for = go_on()
        except StopIteration as end:
            result = end.value
            return result
