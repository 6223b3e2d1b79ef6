"""Signals over PostgreSQL: LISTEN and NOTIFY, on two connections of their own.

A transaction of ours never notifies: NOTIFY takes a lock over the whole server at commit, and whoever rolls back would
tell nothing. Through a pooler in transaction mode LISTEN does not work; then everything is found by looking.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any, NoReturn

from psycopg import AsyncConnection, sql
from sqlalchemy.engine import URL

from board.db.engine import NOTICE_SILENCE
from board.signals.signal import Channel

CONNECT_SECONDS = 5
# A connection over which nothing comes is asked for a sign so often, seconds: a network may swallow everything.
CHECK_SECONDS = 10.0
ANSWER_SECONDS = 2.0

# One round trip for all of them; PostgreSQL delivers them in this order.
_NOTIFY = sql.SQL("SELECT pg_notify(m.channel, m.message) FROM unnest(%s::text[], %s::text[]) AS m (channel, message)")


class PostgresCarrier:
    name = "PostgreSQL"

    def __init__(self, url: URL, installation: str) -> None:
        self._names = {channel: f"board_{installation}_{channel}" for channel in Channel}
        self._url = url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._sender: AsyncConnection[Any] | None = None

    async def listen(
        self, channels: Collection[Channel], hear: Callable[[str], None], ready: Callable[[], None]
    ) -> NoReturn:
        connection = await self._connect()
        try:
            for channel in channels:
                await _do(connection, sql.SQL("LISTEN {}").format(sql.Identifier(self._names[channel])))
            ready()
            while True:
                async for notice in connection.notifies(timeout=CHECK_SECONDS):
                    hear(notice.payload)
                await _do(connection, sql.SQL("SELECT 1"))
        finally:
            connection.pgconn.finish()  # close() might wait for an answer

    async def send(self, messages: Sequence[tuple[Channel, str]]) -> None:
        if self._sender is None:
            self._sender = await self._connect()
        names = [self._names[channel] for channel, _ in messages]
        await _do(self._sender, _NOTIFY, [names, [text for _, text in messages]])

    async def close(self) -> None:
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.pgconn.finish()

    async def _connect(self) -> AsyncConnection[Any]:
        return await AsyncConnection.connect(
            self._url, autocommit=True, connect_timeout=CONNECT_SECONDS, **NOTICE_SILENCE
        )


async def _do(connection: AsyncConnection[Any], statement: sql.SQL | sql.Composed, values: Sequence[Any] = ()) -> None:
    """Carry it out. Without an answer in time the connection is thrown away: on its own the driver would first ask the
    silent server to cancel, which takes as long again. Raises TimeoutError."""
    asking = asyncio.ensure_future(connection.execute(statement, values))
    try:
        await asyncio.wait({asking}, timeout=ANSWER_SECONDS)
    finally:
        if not asking.done():
            connection.pgconn.finish()
            asking.cancel()
    if asking.cancelled() or not asking.done():
        raise TimeoutError("it does not answer")
    await asking
