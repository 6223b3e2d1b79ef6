"""The one module of the board that integrations may import: what a handler gets, and what it answers.

A handler does the `work` of a task (asks Dify, makes a thumbnail) or its `act` (calls a webhook). It never writes
a task row and never opens a connection of its own: it reads a `Job`, talks through `job.http`, announces every
call that matters outside with `job.send()`, and returns an `Outcome`. Settling is the board's business.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

# Reading and writing of texts and tables, which handlers share with the board's own imports and exports.
from board.sheets.decode import ENCODINGS as ENCODINGS
from board.sheets.decode import BadText as BadText
from board.sheets.decode import decode as decode
from board.sheets.read import read_table as read_table
from board.sheets.read_csv import DELIMITERS as DELIMITERS
from board.sheets.table import BadTable as BadTable
from board.sheets.table import Table as Table
from board.sheets.write import WRITTEN as WRITTEN
from board.sheets.write import write_csv as write_csv
from board.sheets.write import write_xlsx as write_xlsx

Json: TypeAlias = Any  # what json.loads gives: dict, list, str, int, float, bool, None
JsonObject: TypeAlias = dict[str, Any]

Wait = Literal["stream", "blocking", "callback"]
AskReason = Literal["partial_result", "empty_output", "invalid_output"]


class ErrorClass(StrEnum):
    """How a failure is treated: see docs/retries.md."""

    TRANSIENT = "transient"  # the same request may succeed later: retried with backoff
    QUOTA = "quota"  # a rate or quota limit: retried, waits longer, Retry-After honoured
    PERMANENT = "permanent"  # nothing changes by trying again: failed at once, or asks a person
    UNKNOWN = "unknown"  # it cannot be told: few retries, then failed or a person


class Cause(StrEnum):
    """Why it failed, in the fixed classes that reports count."""

    TIMEOUT = "timeout"
    NETWORK = "network"
    UPSTREAM_4XX = "upstream_4xx"
    UPSTREAM_5XX = "upstream_5xx"
    AUTH = "auth"
    RATE_LIMIT = "rate_limit"
    BAD_OUTPUT = "bad_output"
    PRECONDITION = "precondition"
    CRASH = "crash"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Success:
    """The work is done. `ask` sends it to a person whatever the type's review rules say.

    result: any JSON value, shown and handed on. judgement: summary, advice, verdict, confidence (0 to 1), reasons,
    risks; left out, the type's `judgement` paths are read from the result. raw_text: what the model wrote, kept with
    the attempt. tokens: total tokens; cost: a decimal text with its currency, such as "0.0021 USD".
    """

    result: Json = None
    judgement: JsonObject | None = None
    raw_text: str | None = None
    tokens: int | None = None
    cost: str | None = None
    ask: AskReason | None = None
    ask_message: str | None = None
    reference: str | None = None  # the outside system's own id of what was done


@dataclass(frozen=True, slots=True)
class Failure:
    """The attempt failed. `message` is one plain sentence for a person, without secrets, at most ~500 characters.

    http_status and code are what the outside system said; the type's `retry.rules` may match on them. retry_after:
    seconds the outside system asked to wait. open_operation: True where the announced call may still be going on: the
    board asks again (`reconcile`) after a pause, without spending a retry, and in the end asks a person; it sends
    nothing meanwhile. open_for: seconds since sending during which no answer of the outside system can be final (its
    log lags); the board asks at least that long.
    """

    error_class: ErrorClass
    cause: Cause
    message: str
    code: str | None = None
    http_status: int | None = None
    retry_after: float | None = None
    rule: str | None = None  # the name of the rule that classed the error
    raw_text: str | None = None
    open_operation: bool = False
    open_for: float = 0.0
    tokens: int | None = None  # what the attempt has cost all the same, as in `Success`
    cost: str | None = None


@dataclass(frozen=True, slots=True)
class UnknownOutcome:
    """Something was sent and nobody can tell whether it happened. Never folded into a failure."""

    message: str
    raw_text: str | None = None


@dataclass(frozen=True, slots=True)
class NotStarted:
    """Only from `reconcile`: the target has proven that the earlier call never took effect."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class Later:
    """Nothing has failed for good: what it needs is busy, or not there yet. Comes again, and no retry is spent.

    tried: what the call of this attempt came to: nothing was sent, "transient" (it is proven that nothing happened) or
    "unknown"; after the last one `reconcile` is asked before anything else.
    """

    message: str
    seconds: float  # until then
    tried: str = ""


@dataclass(frozen=True, slots=True)
class NeedsInput:
    """The work waits outside for a person to fill in a form. The call stays open; the answer goes to `reconcile`.

    form: {id, title, content (Markdown), fields: [{name, kind: text|choice|file|files, options, default}],
    actions: [{id, title}], expires_at: RFC 3339 or None}. Every field must be given. It is shown to people and programs
    that may read the task: no secrets in it.
    """

    message: str
    form: JsonObject
    reference: str | None = None


Outcome: TypeAlias = Success | Failure | UnknownOutcome | Later | NeedsInput


@dataclass(frozen=True, slots=True)
class CalledBack:
    """What came by the callback address of an attempt: how the work ended that was started and not waited for.

    error_class, code and retry_after say more about a failure, as in `Failure`; reference: the outside system's own id.
    """

    succeeded: bool
    result: Json = None
    judgement: JsonObject | None = None
    message: str | None = None
    error_class: ErrorClass = ErrorClass.TRANSIENT
    code: str | None = None
    retry_after: float | None = None
    reference: str | None = None

    def outcome(self) -> Success | Failure:
        if self.succeeded:
            return Success(self.result, self.judgement, reference=self.reference)
        cause = Cause.RATE_LIMIT if self.error_class is ErrorClass.QUOTA else Cause.UNKNOWN
        message = self.message or "It was called back that the work failed, without a reason."
        return Failure(self.error_class, cause, message, code=self.code, retry_after=self.retry_after)


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


class HttpError(Exception):
    """Base of what `Http` raises. The message is one plain sentence without secrets."""


class NotSent(HttpError):
    """The connection was never made: nothing left the house."""


class Lost(HttpError):
    """Sent, but the answer was lost (time-out, reset, cut short): the outcome is unknown."""


class Refused(HttpError):
    """The guarded door refused the address or the size; nothing left the house."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One whole HTTP answer. Header names are lower-case. body is at most the door's size limit."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", errors="replace")


class StreamedAnswer(Protocol):
    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises Lost when it is cut or silent for longer than the read time-out."""

    async def read(self) -> bytes:
        """The rest of the body, up to the door's limit."""


class Http(Protocol):
    """The only way out. Redirects are not followed, proxies of the environment are ignored."""

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout: float = 30.0,
    ) -> Answer:
        """One call, at most `timeout` seconds in all. Raises NotSent, Lost, Refused."""

    def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        read_timeout: float = 60.0,
    ) -> AbstractAsyncContextManager[StreamedAnswer]:
        """A call whose body is read as it arrives; `read_timeout` is the longest silence in seconds."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that the board keeps. type: its media type, judged by content. sha256: of the content, hexadecimal."""

    file_id: str
    name: str
    type: str
    bytes: int
    sha256: str
    facts: JsonObject = field(default_factory=dict)  # what `keep` was told


class FileMissing(Exception):
    """The payload names a file that is not there any more."""

    def __init__(self, file_id: str) -> None:
        super().__init__(f"The file {file_id} is not there any more. Upload it again and correct the payload.")


class JobFiles(Protocol):
    """The board's files, for one attempt. Every call may raise StorageError, which need not be caught: it becomes a
    transient or a permanent failure by itself, as does FileMissing."""

    @property
    def slots(self) -> int:
        """How many files this process may work on at the same time."""

    @property
    def max_pixels(self) -> int:
        """How many pixels a picture may have."""

    @property
    def max_bytes(self) -> int:
        """How many bytes a file may have."""

    async def about(self, file_id: str) -> StoredFile:
        """Raises FileMissing."""

    def read(self, file_id: str) -> AsyncIterator[bytes]:
        """The content in pieces. Raises FileMissing."""

    def local(self, file_id: str) -> AbstractAsyncContextManager[Path]:
        """The content as a file of this machine, to be read and never written. Raises FileMissing."""

    async def keep(
        self, path: Path, name: str, *, recipe: str | None = None, facts: JsonObject | None = None
    ) -> StoredFile:
        """Keep what work has made, under a name for people; it lives as long as the task. Do not write into the file at
        `path` any more.

        recipe: at most 64 characters that stand for everything the content follows from (what came in, what was done):
        `made` finds it again. facts: what is known of it beside its bytes.
        """

    async def made(self, recipe: str) -> StoredFile | None:
        """What an earlier attempt, or another task, has kept under this recipe; from now on it is this task's too."""

    def named_in(self, value: Json) -> Sequence[str]:
        """The ids of all files that a payload names as `{"file": "file_…"}`, in its order, each once."""


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


class Handler(Protocol):
    """One way to do work. Registered through the entry-point group `board.handlers`: a function returning a list.

    Four attributes may be added: `phases`, ("work",) when left out; `options`, the names of further keys that the
    handler takes in its YAML block, none when left out; `waits`, the values of `handler.wait` that it knows, its own
    default first, ("stream",) when left out; and `slots = "files"` for work that keeps a processor or a disk busy, so
    that it runs beside other work and not in its place. A handler that is a `Tester` too tests connections of its kind.
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


class StorageError(Exception):
    """The storage did not do what was asked. The message is one plain sentence without secrets.

    transient: the same may succeed later (the disk is full, the network is away), so the work is tried again.
    """

    def __init__(self, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.transient = transient


class ContentGone(StorageError):
    """There is nothing (any more) under this key."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"A file is missing from {where}, though the board knows it. Put the storage back from your backup.",
            transient=False,
        )


class Storage(Protocol):
    """Keeps content under keys; what stands under a key never changes, and stands there whole or not at all.

    A key is at most 64 characters of a-z, 0-9 and "-". Every call may block, may come from any thread, and raises
    StorageError. Registered through the entry-point group `board.storage`: the entry's name is the scheme of
    BOARD_STORAGE_URL, and what it names is a StorageMaker.
    """

    where: str  # in words that a person understands, without secrets

    def put(self, key: str, source: Path) -> None:
        """Keep the content of a file; when this returns it is safe from a power cut. A key that is there is kept.

        The file itself may become what is stored: nobody writes into it any more; removing it does no harm.
        """

    def has(self, key: str) -> bool: ...

    def read(self, key: str, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The content from byte `start` on, `length` bytes of it or all, in pieces. Raises ContentGone."""

    def local(self, key: str) -> Path | None:
        """Where the content lies on this machine, to be read and never written; None where it must be fetched."""

    def remove(self, key: str) -> None:
        """Forget it; no error when it is not there."""

    def contents(self) -> Iterator[tuple[str, float]]:
        """Every key with the time of its writing, in seconds since 1970."""


StorageMaker: TypeAlias = Callable[[str], Storage]  # called with BOARD_STORAGE_URL; ValueError says what is wrong in it
