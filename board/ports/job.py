"""One attempt at one task, as its handler sees it, and all that it may ask of the board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from board.ports.files import JobFiles
from board.ports.http import Answer, Http
from board.ports.outcome import CalledBack, JsonObject, Outcome, Wait


@dataclass(frozen=True, slots=True)
class ConnectionView:
    """A connection with its secrets opened, for this attempt only. Never log it; `repr` hides the secrets."""

    name: str
    kind: str
    url: str
    options: Mapping[str, Any] = field(default_factory=dict)  # every other key of the connection's YAML
    secrets: Mapping[str, Any] = field(default_factory=dict, repr=False)  # key, secret (a text or several), auth


@dataclass(frozen=True, slots=True)
class FormAnswer:
    """A person's answer to the form of a NeedsInput. form_id, action and the names of inputs are those of that form."""

    form_id: str
    action: str
    inputs: JsonObject


@dataclass(frozen=True, slots=True)
class SentOperation:
    """What an earlier attempt of this task announced and did not close."""

    key: str
    kind: str
    target: str
    user: str  # the earlier attempt's `job.user`
    reference: str | None  # None: the answer was lost before an id was seen
    sent_at: datetime
    answer: FormAnswer | None = None  # what a person said to the form that it waited with
    request: bytes | None = field(default=None, repr=False)  # the bytes, where they are fixed


class Job(Protocol):
    """One attempt at one task, as its handler sees it."""

    task_id: str
    type: str
    phase: Literal["work", "act"]
    priority: str
    round: int  # 1, and one more after each "revise"
    attempt: int  # the lease token: grows with every claim of this task
    user: str  # "board:<internal id>:<lease token>": unique to this attempt, at most 255 ASCII characters
    inputs: JsonObject  # `inputs` of the type's handler or action, templates filled in; without them the payload
    payload: JsonObject
    options: Mapping[str, Any]  # further keys of the type's handler or action, such as `size`
    connection: ConnectionView | None
    output_schema: JsonObject | None  # JSON Schema (2020-12) of the result
    timeout: float  # seconds for the whole attempt
    wait: Wait  # how the handler is to wait for its result; one of its `waits`
    answer_url: str | None  # with wait `callback`: where the result may be handed in, once; it is a secret
    http: Http
    files: JobFiles

    async def send(self, *, kind: str, target: str, request: bytes, fixed: bool = False) -> bytes:
        """Announce an outside call: an operation row is reserved, marked sent and committed before this returns.

        kind: such as "dify.run". target: who is called, in words that a person understands. request: the body. fixed:
        the body belongs to the operation, and a later try must send the very bytes of the first; returned are the
        bytes to send. Raises Stopped when this attempt no longer holds its lease, OperationConflict when the key
        (action + connection + task, or the type's own) is taken by other content, its kind OperationBusy while another
        task is doing this very action (answer with `Later`), AlreadyConfirmed when it is done.
        """

    async def reference(self, external_reference: str) -> None:
        """Store the outside system's own id as soon as it is known (Dify: workflow_run_id)."""

    async def post(
        self, *, kind: str, body: bytes, timeout: float | None = None, whole: bool = False
    ) -> Answer | Outcome:
        """Announce one call to `connection` and make it, as a webhook is made: signed, with the connection's own
        authentication, written down for the log of tries.

        The answer where it is a 2xx; anything else is the outcome that follows from it. timeout: seconds for the whole
        call, 30 when left out. whole: read all of the answer, not only its beginning. Raises Stopped as `send` does.
        """

    def tried(self, milliseconds: int, http_status: int | None, outcome: str, detail: str) -> None:
        """Note a call that was announced with `send` and made, for the log of tries; `post` does so by itself.

        outcome: confirmed, rejected, transient (nothing happened, it may come again) or unknown. detail: the answer's
        beginning, or why there was none.
        """

    async def called_back(self, within: float) -> CalledBack | None:
        """Wait for the callback of this attempt, or of an earlier one of the same call. None: none within so many
        seconds (0: only look). The attempt keeps its lease and gives its slot to other work meanwhile."""

    async def progress(self, percent: float | None = None, message: str | None = None) -> None:
        """Tell whoever watches how far it is (0 to 100)."""

    async def text(self, piece: str) -> None:
        """Pass on a piece of the model's text to whoever watches."""


# What a handler's CancelledError says when people or programs have asked that the task be stopped. Without it only this
# attempt ends (the worker goes down, its lease is lost), and what it has begun outside is taken up by the next one.
CANCELLED = "the task was cancelled"


class Stopped(Exception):
    """This attempt has lost its lease or its task was cancelled: stop quietly, nothing of it counts any more."""


class OperationConflict(Exception):
    """The operation key is already used for other content. unknown: nobody can tell what became of that other call."""

    def __init__(self, message: str, *, unknown: bool = False) -> None:
        super().__init__(message)
        self.unknown = unknown


class OperationBusy(OperationConflict):
    """Somebody else is doing this very action: in about `seconds` it may be known how it went."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class AlreadyConfirmed(Exception):
    """This business action was done before; `reference` is the outside system's id of it."""

    def __init__(self, reference: str | None) -> None:
        super().__init__("This action was done before.")
        self.reference = reference
