"""One attempt as its handler sees it: board.ports.Job over the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import RowMapping

from board.db.clock import read_now
from board.db.engine import Database
from board.effects import calls, journal, operations, waits
from board.effects.http import MAX_ANSWER
from board.effects.operations import Delivered
from board.effects.reuse import Wanted
from board.effects.scribe import Documents, envelope
from board.effects.tried import SoFar, so_far
from board.ports import (
    AlreadyConfirmed,
    Answer,
    CalledBack,
    ConnectionView,
    Http,
    JobFiles,
    JsonObject,
    OperationBusy,
    OperationConflict,
    Outcome,
    Wait,
)
from board.signals.signal import Progress, Signal, Text
from board.tasks.history import By, record
from board.tasks.ledger import Lease, find
from board.tasks.text import clean
from board.tasks.view import time
from board.worker.mailbox import Mailbox


@dataclass(slots=True)
class AttemptJob:
    task_id: str
    type: str
    phase: Literal["work", "act"]
    priority: str
    round: int
    attempt: int
    user: str
    inputs: JsonObject = field(repr=False)
    payload: JsonObject
    options: Mapping[str, Any]
    connection: ConnectionView | None
    output_schema: JsonObject | None
    timeout: float
    wait: Wait
    answer_url: str | None = field(repr=False)
    mailbox: Mailbox
    http: Http
    files: JobFiles
    operation_key: str
    content: bytes | None  # what an action is about, so that two tasks that mean the same are known; None: the request
    webhook_secret: str = field(repr=False)
    callback_url: str | None = field(repr=False)  # as it is called; the resume address of a flow bears a secret
    row: RowMapping
    lease: Lease
    may_resend: bool
    db: Database
    documents: Documents
    tell: Callable[[Signal], None]  # whoever watches; never waits
    tokens_per_day: int | None = None  # the budget of its type
    trial: bool = False  # it tries whether a shut connection works again
    operation: int | None = None  # the id of what this attempt has announced, or takes up
    called: int = 0  # how often this attempt has announced a call
    written: int = 0  # characters of text passed on so far
    tries: list[Delivered] = field(default_factory=list)  # calls that were made, written when the attempt ends

    async def send(self, *, kind: str, target: str, request: bytes, fixed: bool = False) -> bytes:
        wanted = Wanted(
            key=self.operation_key,
            kind=kind,
            target=target,
            request=request,
            content=request if self.content is None else self.content,
            connection=self.connection.name if self.connection else None,
            fixed=fixed,
            resend=self.may_resend,
        )

        def reserve() -> tuple[int, bytes]:
            try:
                with self.db.write() as tx:
                    return operations.send(tx, self.row, self.lease, wanted)
            except (OperationConflict, AlreadyConfirmed) as found:
                self._tell(found)
                raise

        # Shielded: were this cut in the middle, the row could be committed without anybody knowing of it here.
        self.operation, body = await asyncio.shield(asyncio.to_thread(reserve))
        self.called += 1
        return body

    def _tell(self, found: OperationConflict | AlreadyConfirmed) -> None:
        """Say where people look why nothing is sent: with the operation, and with this task."""
        by = By("worker", self.row["lease_owner"] or "", "worker")
        with self.db.write() as tx:
            stored = operations.by_key(tx, self.operation_key)
            if stored is None:
                return
            if isinstance(found, OperationBusy):
                waits.enter(tx, self.lease, stored["id"])
                return
            about = {"operation": str(stored["id"])}
            if isinstance(found, OperationConflict):
                journal.refused(tx, stored["id"], by, f"Task {self.task_id} was refused: {found}")
                record(tx, self.row["id"], "operation_refused", by, note=str(found), data=about)
            elif stored["task"] != self.row["id"]:
                whose = stored["owner"] or f"task {stored['task_id']}"
                note = f"{whose[0].upper()}{whose[1:]} has done this before (“{self.operation_key}”); nothing was sent."
                record(tx, self.row["id"], "done_before", by, note=note, data=about)

    async def reference(self, external_reference: str) -> None:
        operation = self.operation
        assert operation is not None, "send() comes before reference()"

        def store() -> None:
            with self.db.write() as tx:
                operations.reference(tx, operation, self.lease, external_reference)

        await asyncio.to_thread(store)

    async def post(
        self, *, kind: str, body: bytes, timeout: float | None = None, whole: bool = False
    ) -> Answer | Outcome:
        assert self.connection is not None
        most = MAX_ANSWER if whole else calls.ENOUGH
        url = self.connection.url
        return await calls.call(self, url, kind=kind, body=body, fixed=False, seconds=timeout, most=most)

    async def called_back(self, within: float) -> CalledBack | None:
        return await self.mailbox.wait(self.lease, within)

    async def progress(self, percent: float | None = None, message: str | None = None) -> None:
        self.tell(Progress.told(self.lease, percent, message))

    async def text(self, piece: str) -> None:
        if piece:
            self.tell(Text(self.lease.task, self.lease.token, self.written, clean(piece)))
            self.written += len(piece)

    def tried(self, milliseconds: int, http_status: int | None, outcome: str, detail: str) -> None:
        """Note a call that was announced and made, for the delivery log."""
        assert self.operation is not None, "send() comes before the call"
        if self.answer_url:
            detail = detail.replace(self.answer_url.rpartition("/")[2], "…")  # an answer may repeat what was sent
        self.tries.append(Delivered(self.operation, milliseconds, http_status, outcome, detail))

    async def so_far(self) -> SoFar:
        """What the ledger knows of this attempt's operation: how often and how long it has been tried."""
        operation = self.operation
        assert operation is not None, "send() comes before so_far()"

        def look() -> SoFar:
            with self.db.read() as connection:
                return so_far(connection, operation)

        return await asyncio.to_thread(look)

    def envelope(self) -> bytes:
        """The body of an action's webhook: the task as it stands, and the decision that let it out."""
        with self.db.read() as connection:
            row = find(connection, self.task_id)
            assert row is not None
            document = self.documents(connection, row)
            return envelope("task.action", row["event_seq"], document, time(read_now(connection)))
