"""Reading server-sent events, as a browser would."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx2


class Event(NamedTuple):
    kind: str
    id: str | None
    data: Any


class Stream:
    """An open stream: iterate over its events. `comments`: what stood between them."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.answer = answer
        self.comments: list[str] = []
        self._lines = answer.iter_lines()

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        found: dict[str, str] = {}
        for line in self._lines:
            name, _, value = line.partition(": ")
            if line.startswith(":"):
                self.comments.append(line)
            elif line:
                assert name not in found, "one line of each"
                found[name] = value
            elif found:
                return Event(found["event"], found.get("id"), json.loads(found["data"]))
        raise StopIteration

    def until(self, kind: str, status: str | None = None) -> list[Event]:
        """The events up to the first of this kind, and with this status."""
        seen: list[Event] = []
        for event in self:
            seen.append(event)
            if event.kind == kind and status in (None, event.data.get("status")):
                return seen
        raise AssertionError(f"it closed without {kind} {status or ''}: {seen}")


@contextmanager
def stream(client: httpx2.Client, method: str, path: str, **more: Any) -> Iterator[Stream]:
    """An open stream of the board's."""
    with client.stream(method, path, **more) as answer:
        assert answer.is_success, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield Stream(answer)


def statuses(events: list[Event]) -> list[str]:
    return [event.data["status"] for event in events if event.kind == "status"]
