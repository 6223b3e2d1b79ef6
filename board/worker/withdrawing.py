"""Calls off what cancelled tasks have left going on outside, and notes what the other side has shown of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping

from board.catalogue.store import Catalogue
from board.db.engine import Database
from board.effects import journal, open_calls, operations, withdrawals
from board.effects.http import Doors
from board.logs import first_line
from board.ports import ConnectionView, Handler, HttpError, Withdrawer, Withdrawn
from board.review import forms
from board.tasks.history import By, record
from board.tasks.states import Phase

log = logging.getLogger(__name__)

BY = By("system", "board", "timer")
MOST_SECONDS = 30.0  # for one look; the other side is asked a handful of short questions
MOST_TRIES = 6
FIRST_PAUSE = 10.0  # seconds; twice as long each time: together five minutes


@dataclass(frozen=True, slots=True)
class _Call:
    """All that is needed to call one off."""

    row: RowMapping
    handler: Withdrawer
    connection: ConnectionView
    options: Mapping[str, Any]


class Withdrawing:
    """allow: the private addresses that may be reached, as `BOARD_ALLOW_PRIVATE_TARGETS` says."""

    def __init__(
        self, db: Database, catalogue: Catalogue, handlers: Mapping[str, Handler], allow: Sequence[str]
    ) -> None:
        self._db, self._catalogue, self._handlers, self._allow = db, catalogue, handlers, allow

    def look(self) -> None:
        """Call off what is due. Blocks; for a thread without an event loop, of one process at a time."""
        with self._db.read() as connection:
            rows = withdrawals.due(connection)
        if not rows:
            return
        calls = []
        with self._db.write() as tx:
            for row in rows:
                if not withdrawals.is_wanted(row) or (call := self._call(tx, row)) is None:
                    withdrawals.done(tx, row["id"])
                elif left := forms.undo_left(tx, row["task"]):
                    withdrawals.postpone(tx, row["id"], left)
                else:
                    calls.append(call)
        if calls:
            asyncio.run(self._withdraw(calls))

    def _call(self, connection: Connection, row: RowMapping) -> _Call | None:
        """None where nothing can be called off."""
        try:
            spec = self._catalogue.version(connection, row["type"], row["type_version"]).spec
            block: Any = spec.action if row["phase"] == Phase.ACT else spec.handler
            handler = self._handlers.get(block.use) if block is not None else None
            if not isinstance(handler, Withdrawer) or not row["connection"]:
                return None
            target = self._catalogue.open_connection(connection, row["connection"])
        except Exception as error:  # a type written by hand, a secret that cannot be opened
            log.warning("what task %s left outside cannot be called off: %s", row["task_id"], first_line(error))
            return None
        return None if target is None else _Call(row, handler, target, block.options)

    async def _withdraw(self, calls: Sequence[_Call]) -> None:
        doors = Doors(self._allow)
        try:
            await asyncio.gather(*(self._one(call, doors) for call in calls))
        finally:
            await doors.close()

    async def _one(self, call: _Call, doors: Doors) -> None:
        name = call.connection.name
        try:
            async with asyncio.timeout(MOST_SECONDS):
                sent = open_calls.as_sent(call.row)
                said = await call.handler.withdraw(call.connection, sent, call.options, doors.to(call.connection.url))
        except (HttpError, TimeoutError) as error:
            why = str(error).rstrip(".") or f"no answer within {MOST_SECONDS:g} s"
            said = Withdrawn(f"It could not be called off: “{name}” was not reached ({why}).", again=FIRST_PAUSE)
        except Exception as error:
            log.exception("what task %s left outside could not be called off", call.row["task_id"])
            said = Withdrawn(f"It could not be called off: {type(error).__name__}. The log has the details.")
        await asyncio.to_thread(self._note, call.row, said)

    def _note(self, row: RowMapping, said: Withdrawn) -> None:
        with self._db.write() as tx:
            if said.again is not None and row["withdrawal_tries"] + 1 < MOST_TRIES:
                withdrawals.postpone(tx, row["id"], max(said.again, FIRST_PAUSE * 2 ** row["withdrawal_tries"]))
                return
            withdrawals.done(tx, row["id"])
            journal.note(tx, row["id"], "withdrawn", BY, said.message)
            record(tx, row["task"], "call_withdrawn", BY, note=said.message, data={"operation": str(row["id"])})
            if said.over and row["harmless"]:  # nothing of it can count any more: the task may be put back
                operations.close(tx, row["id"], "rejected", error=said.message)
