"""Looks at a connection and says in plain words what is wrong with it. Nothing is started by it.

A chat cannot be looked at: it gets a message, where whoever asked has seen that coming.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from typing import cast

from pydantic import ValidationError
from sqlalchemy import Connection

from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue, list_types
from board.effects.http import Doors
from board.ports import ConnectionUser, ConnectionView, Handler, HttpError, Message, Notifier, Success, Tester, Tried

MOST_SECONDS = 60.0  # for a whole look; a person waits for it


class NoSuchConnection(Exception):
    """There is no connection of that name."""


class Trial:
    """One look, in two steps, so that the database is not held while the outside system is asked."""

    def __init__(
        self,
        catalogue: Catalogue,
        handlers: Mapping[str, Handler],
        allow: Sequence[str],
        notifiers: Mapping[str, Notifier] | None = None,
        public_url: str = "",
    ) -> None:
        """allow: the private addresses that may be reached, as `BOARD_ALLOW_PRIVATE_TARGETS` says. notifiers: by kind;
        left out, nothing is sent to any chat. public_url: what a message leads to."""
        self._catalogue, self._handlers, self._allow = catalogue, handlers, allow
        self._notifiers, self._public_url = notifiers or {}, public_url

    def read(self, connection: Connection, name: str) -> tuple[ConnectionView, list[ConnectionUser]]:
        """The connection with its secrets, and the types that use it. Raises NoSuchConnection."""
        view = self._catalogue.open_connection(connection, name)
        if view is None:
            raise NoSuchConnection(f"There is no connection “{name[:120]}”.")
        return view, _users(connection, name)

    def look(self, view: ConnectionView, users: Sequence[ConnectionUser]) -> list[Tried]:
        """What it showed; never empty. Blocks; for a thread without an event loop."""
        tester = self._tester(view.kind)
        if tester is None and view.kind in self._notifiers:
            return [asyncio.run(self._say(self._notifiers[view.kind], view))]
        if tester is None:
            message = f"A connection of kind {view.kind} cannot be tried without sending something."
            return [Tried("warning", message)]
        return asyncio.run(self._ask(tester, view, users))

    def can(self, kind: str) -> bool:
        """Whether connections of this kind can be looked at."""
        return self._tester(kind) is not None or kind in self._notifiers

    async def _say(self, notifier: Notifier, view: ConnectionView) -> Tried:
        message = Message(
            id=f"test:{secrets.token_hex(8)}",
            title="AI Task Board: a test message",
            text=f"The connection “{view.name}” works. 连接可用。",
            link=self._public_url,
            label="Open the board",
            event="test",
        )
        doors = Doors(self._allow)
        try:
            told = await notifier.send(view, message, doors.to(view.url))
        finally:
            await doors.close()
        if not isinstance(told, Success):
            return Tried("wrong", told.message)
        if told.reference == "accepted":
            return Tried("ok", "It accepted a test message. Look whether it has come: that is not told.")
        return Tried("ok", "It took a test message.")

    async def _ask(self, tester: Tester, view: ConnectionView, users: Sequence[ConnectionUser]) -> list[Tried]:
        doors = Doors(self._allow)
        try:
            async with asyncio.timeout(MOST_SECONDS):
                return list(await tester.test(view, doors.to(view.url), users))
        except TimeoutError:
            return [Tried("wrong", f"It did not answer within {MOST_SECONDS:g} s.")]
        except HttpError as error:
            return [Tried("wrong", str(error))]
        finally:
            await doors.close()

    def _tester(self, kind: str) -> Tester | None:
        for _, handler in sorted(self._handlers.items()):
            if handler.connection_kind == kind and hasattr(handler, "test"):
                return cast(Tester, handler)
        return None


def _users(connection: Connection, name: str) -> list[ConnectionUser]:
    users = []
    for row in list_types(connection):
        try:
            spec = TypeSpec.model_validate(row["spec"])
        except ValidationError:  # stored by another release; `board doctor` names it
            continue
        if spec.handler.connection == name:
            users.append(ConnectionUser(spec.name, spec.handler.use, spec.handler.model_dump()))
    return users
