"""What a package registers: ways to do work, to test connections, and a demo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from board.ports.http import Http
from board.ports.job import ConnectionView, Job, SentOperation
from board.ports.outcome import JsonObject, NotStarted, Outcome


@dataclass(frozen=True, slots=True)
class Tried:
    """What one look at a connection has shown, in a plain sentence that says what helps. With "wrong" no task works."""

    status: Literal["ok", "warning", "wrong"]
    message: str


@dataclass(frozen=True, slots=True)
class ConnectionUser:
    """A task type that works through a connection. handler: its block of the YAML, templates not filled in."""

    type: str
    use: str
    handler: Mapping[str, Any]


class Tester(Protocol):
    """A handler that can look at a connection of its kind: it starts nothing and costs nothing."""

    connection_kind: str | None

    async def test(self, connection: ConnectionView, http: Http, users: Sequence[ConnectionUser]) -> Sequence[Tried]:
        """What is wrong with the connection, or with how types use it. Raises nothing; takes at most a minute."""


@runtime_checkable
class Closing(Protocol):
    """A handler that holds something for as long as the process runs, such as processes of its own."""

    def close(self) -> None:
        """Let it go: no work runs any more. Within a second; what it held together with others is closed once."""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What became of a call that was to be called off, as far as the outside system has shown it.

    message: a plain sentence for the task's history. over: it has ended, and nothing of it counts. again: seconds until
    it should be looked at once more, because nothing is certain yet; None: this is all that can be done.
    """

    message: str
    over: bool = False
    again: float | None = None


@runtime_checkable
class Withdrawer(Protocol):
    """A handler that can call off what it has begun outside."""

    async def withdraw(
        self, connection: ConnectionView, operation: SentOperation, options: Mapping[str, Any], http: Http
    ) -> Withdrawn:
        """The operation's task was cancelled, and nobody works on it any more: end what still goes on, and look.

        options: as in `Job`. Raises HttpError where the outside system could not be asked: it is tried again.
        """


class Handler(Protocol):
    """One way to do work. Registered through the entry-point group `board.handlers`: a function returning a list.

    Five attributes may be added: `phases`, ("work",) when left out; `connection_optional`, True where a type may do
    without the connection; `options`, the names of further keys that the
    handler takes in its YAML block, none when left out; `waits`, the values of `handler.wait` that it knows, its own
    default first, ("stream",) when left out; and `slots = "files"` for work that keeps a processor or a disk busy, so
    that it runs beside other work and not in its place. Where such work takes no half second, the next task is begun
    while one runs: the handler sees to it that only one of them computes. A handler that is a `Tester` too tests
    connections of its kind, one that is a `Withdrawer` is told of cancelled tasks whose call is out, one that is a
    `Previewer` draws documents for the pages, and one that is `Closing` is told when the process stops.
    """

    name: str  # what `handler.use` or `action.use` names, such as "dify.workflow"
    connection_kind: str | None  # "dify": the type must name a connection of that kind
    side_effects: bool  # the default of `handler.side_effects`

    def check(self, handler: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        """Problems of a type's handler block as (path, plain sentence); empty when it is good."""

    async def run(self, job: Job) -> Outcome:
        """Do the work. May be cancelled at any await (see CANCELLED). An exception counts as a transient failure."""

    async def reconcile(self, job: Job, operation: SentOperation) -> Outcome | NotStarted:
        """Ask the outside system what became of an earlier attempt's call, before anything is started again."""


@dataclass(frozen=True, slots=True)
class Demo:
    """What `board up --demo` loads. Registered through the entry-point group `board.demo`.

    app: an ASGI application (the stand-in), mounted under `mount`. catalogue: YAML texts with types and connections;
    the text `{{ base }}` in them is replaced by the mount's full address. tasks: bodies of POST /tasks.
    """

    mount: str
    app: Any
    catalogue: Sequence[str]
    tasks: Sequence[JsonObject]
