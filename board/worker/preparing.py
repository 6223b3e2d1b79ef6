"""All that the attempts of one claim need, read in one go: types, payloads, connections, and what was left open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, RowMapping
from sqlalchemy.exc import DBAPIError

from board import templating
from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue
from board.catalogue.waits import is_called_back, wait_of
from board.db.engine import Database
from board.db.types import dump_json
from board.effects import incoming, open_calls, operations
from board.effects.http import Doors
from board.effects.rewrite import Rewrite
from board.effects.scribe import Documents
from board.files.ledger import Files
from board.ports import Cause, ConnectionView, ErrorClass, Failure, FormAnswer, Handler, Refused
from board.review import forms
from board.signals.signal import Signal
from board.tasks.context import template_context
from board.tasks.ledger import Lease
from board.tasks.states import Phase
from board.tasks.view import data_of_many
from board.worker.attempt_files import AttemptFiles
from board.worker.job import AttemptJob
from board.worker.mailbox import Mailbox


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that an attempt needs."""

    spec: TypeSpec
    handler: Handler
    job: AttemptJob
    left_open: RowMapping | None
    answer: FormAnswer | None = None  # to the form with which the left call waited


class NotRunnable(Exception):
    """The attempt cannot even begin. left: a call of an earlier attempt that may still be going on."""

    def __init__(self, message: str, left: RowMapping | None, error_class: ErrorClass = ErrorClass.PERMANENT) -> None:
        super().__init__(message)
        self.failure = Failure(error_class, Cause.PRECONDITION, message, open_operation=left is not None)


@dataclass(frozen=True, slots=True)
class Read:
    """What the database holds for one attempt. block: of the type, for this phase."""

    spec: TypeSpec
    block: Any
    data: RowMapping
    target: ConnectionView | None
    left: RowMapping | None
    answer: FormAnswer | None = None
    token: str | None = field(default=None, repr=False)  # the right to call back


class Preparer:
    """tell: gets progress and text as they come."""

    def __init__(
        self,
        db: Database,
        catalogue: Catalogue,
        handlers: Mapping[str, Handler],
        documents: Documents,
        webhook_secret: str,
        files: Files,
        rewrite: Rewrite,
        tell: Callable[[Signal], None],
        mailbox: Mailbox,
        public_url: str,
    ) -> None:
        self._db = db
        self._catalogue = catalogue
        self._handlers = handlers
        self._documents = documents
        self._secret = webhook_secret
        self._files = files
        self._rewrite = rewrite
        self._tell = tell
        self._mailbox = mailbox
        self._public_url = public_url

    def beyond(self, connection: Connection) -> list[str]:
        """The types that cannot be worked on here, because a handler that they need is not installed."""
        return self._catalogue.beyond(connection, self._handlers)

    def read(self, connection: Connection, rows: Sequence[RowMapping]) -> list[Read | Exception]:
        """What the database holds for each claimed task, in their order; in the transaction that claims them.

        Attempts that are called back get the right to it. What is wrong with the data of a task is its own error.
        Raises only what the connection raises.
        """
        try:
            data = data_of_many(connection, [row["id"] for row in rows])
            # Who is claimed for the first time has left nothing behind.
            left = open_calls.left_open_by(connection, [row for row in rows if row["lease_token"] > 1])
            answers = forms.answers(connection, left.keys())
        except DBAPIError:
            raise
        except Exception as error:
            return [error] * len(rows)
        targets: dict[str, ConnectionView | Exception | None] = {}
        read = [self._read(connection, row, data.get(row["id"]), left.get(row["id"]), targets) for row in rows]
        for number, row in enumerate(rows):
            if row["id"] in answers and isinstance(it := read[number], Read):
                read[number] = replace(it, answer=answers[row["id"]])
        return self._with_rights(connection, rows, read)

    def _with_rights(
        self, tx: Connection, rows: Sequence[RowMapping], read: list[Read | Exception]
    ) -> list[Read | Exception]:
        """Those whose result is called back get a token for it, stored before anybody outside can know of it."""
        called_back: dict[int, bool] = {}  # by the identity of a type's spec, of which a claim has few
        waiting: dict[Lease, int] = {}
        for number, (row, it) in enumerate(zip(rows, read, strict=True)):
            if not isinstance(it, Read) or row["phase"] != Phase.WORK:
                continue
            if (kind := id(it.spec)) not in called_back:
                called_back[kind] = is_called_back(self._handlers, it.spec)
            if called_back[kind]:
                waiting[Lease(row["id"], row["lease_token"])] = number
        for lease, token in incoming.new_rights(tx, list(waiting)).items() if waiting else ():
            it = read[waiting[lease]]
            assert isinstance(it, Read)
            read[waiting[lease]] = replace(it, token=token)
        return read

    def prepare(
        self, rows: Sequence[RowMapping], read: Sequence[Read | Exception], doors: Doors
    ) -> list[Prepared | Exception]:
        """For each claimed task, in their order: its attempt, or why it cannot begin (NotRunnable, or the error)."""
        return [self._prepared(row, it, doors) for row, it in zip(rows, read, strict=True)]

    def _read(
        self,
        connection: Connection,
        row: RowMapping,
        data: RowMapping | None,
        left: RowMapping | None,
        targets: dict[str, ConnectionView | Exception | None],
    ) -> Read | Exception:
        """targets: the connections that were opened for this claim."""
        try:
            assert data is not None
            spec = self._catalogue.version(connection, row["type"], row["type_version"]).spec
            block: Any = spec.action if row["phase"] == Phase.ACT else spec.handler
            name = block.connection
            if name and name not in targets:
                targets[name] = self._open(connection, name)
            target = targets[name] if name else None
        except DBAPIError:
            raise
        except Exception as error:
            return error
        return target if isinstance(target, Exception) else Read(spec, block, data, target, left)

    def _open(self, connection: Connection, name: str) -> ConnectionView | Exception | None:
        try:
            return self._catalogue.open_connection(connection, name)
        except DBAPIError:
            raise
        except Exception as error:  # its secrets cannot be opened
            return error

    def _prepared(self, row: RowMapping, read: Read | Exception, doors: Doors) -> Prepared | Exception:
        if isinstance(read, Exception):
            return read
        try:
            return self._begin(row, read, doors)
        except Exception as error:
            return error

    def _begin(self, row: RowMapping, read: Read, doors: Doors) -> Prepared:
        spec, block, data, target, left = read.spec, read.block, read.data, read.target, read.left
        acting = row["phase"] == Phase.ACT
        lease = Lease(row["id"], row["lease_token"])
        answer_url = f"{self._public_url}/api/v1/callbacks/{read.token}" if read.token else None
        handler = self._handlers.get(block.use)
        if handler is None:
            # Taken before the type was known here; from the next look on it is left to a worker that has the handler.
            message = f"No handler “{block.use}” is installed in this worker."
            raise NotRunnable(message, left, ErrorClass.TRANSIENT)
        if block.connection and target is None:
            raise NotRunnable(f"The connection “{block.connection}” does not exist any more.", left)
        try:
            door = doors.to(target.url) if target else doors.common()
            inputs = data["payload"]
            if block.inputs is not None:
                inputs = templating.fill(block.inputs, template_context(row, data, answer_url))
            key = operations.default_key(block.use, block.connection, row["task_id"], row["round"])
            if acting and spec.action and spec.action.operation_key:
                key = operations.own_key(templating.fill_strict(spec.action.operation_key, template_context(row, data)))
        except (templating.TemplateProblem, Refused) as error:
            raise NotRunnable(str(error), left) from error
        job = AttemptJob(
            task_id=row["task_id"],
            type=row["type"],
            phase=row["phase"],
            priority=f"P{row['priority']}",
            round=row["round"],
            attempt=lease.token,
            user=open_calls.attempt_user(row["id"], lease.token),
            inputs=inputs,
            payload=data["payload"],
            options=block.options,
            connection=target,
            output_schema=spec.handler.output_schema,
            timeout=spec.handler.timeout,
            wait=wait_of(self._handlers, spec),
            answer_url=answer_url,
            mailbox=self._mailbox,
            http=door,
            files=AttemptFiles(self._db, self._files, row["id"]),
            operation_key=key,
            content=dump_json([data["payload"], data["result"]]).encode() if acting else None,
            webhook_secret=self._secret,
            callback_url=self._rewrite(row["callback_url"]) if row["callback_url"] else None,
            row=row,
            lease=lease,
            may_resend=_may_resend(spec, handler, target, acting),
            db=self._db,
            documents=self._documents,
            tell=self._tell,
            tokens_per_day=spec.limits.tokens_per_day,
            operation=left["id"] if left else None,
        )
        return Prepared(spec, handler, job, left, read.answer)


def _may_resend(spec: TypeSpec, handler: Handler, target: ConnectionView | None, acting: bool) -> bool:
    if target is not None and target.options.get("idempotent"):
        return True
    if acting:
        return not handler.side_effects
    return not (handler.side_effects if spec.handler.side_effects is None else spec.handler.side_effects)
