"""Signals over Redis or Valkey: publish and subscribe, on connections of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NoReturn

import redis.asyncio
from redis.exceptions import RedisError

from board.redis_door import TIMEOUT_SECONDS, Keys, RedisAway, connect_async, reason
from board.signals.signal import Channel

# A connection over which nothing comes is asked for a sign so often, seconds: a server may have been frozen.
CHECK_SECONDS = 10.0


class RedisCarrier:
    """url: as BOARD_REDIS_URL. Raises RedisAway, with the reason in plain words."""

    name = "Redis"

    def __init__(self, url: str, installation: str) -> None:
        keys = Keys(installation)
        self._url = url
        self._names = {channel: keys("signals", channel) for channel in Channel}
        self._sender: redis.asyncio.Redis | None = None

    async def listen(
        self, channels: Collection[Channel], hear: Callable[[str], None], ready: Callable[[], None]
    ) -> NoReturn:
        client = connect_async(self._url)
        subscriber = client.pubsub()
        try:
            await subscriber.subscribe(*(self._names[channel] for channel in channels))
            for _ in channels:
                await _next(subscriber, TIMEOUT_SECONDS)
            ready()
            while True:
                message = await subscriber.get_message(timeout=CHECK_SECONDS)
                if message is None:
                    await subscriber.ping()
                    message = await _next(subscriber, TIMEOUT_SECONDS)
                if message["type"] == "message":
                    hear(message["data"])
        except (RedisError, OSError) as error:
            raise RedisAway(reason(error)) from error
        finally:
            await subscriber.aclose()  # type: ignore[no-untyped-call]
            await client.aclose()

    async def send(self, messages: Sequence[tuple[Channel, str]]) -> None:
        if self._sender is None:
            self._sender = connect_async(self._url)
        async with self._sender.pipeline(transaction=False) as together:
            for channel, text in messages:
                together.publish(self._names[channel], text)
            await together.execute()

    async def close(self) -> None:
        sender, self._sender = self._sender, None
        if sender is not None:
            await sender.aclose()


async def _next(subscriber: redis.asyncio.client.PubSub, seconds: float) -> Any:
    """What the server says next. Raises its TimeoutError when it says nothing."""
    message = await subscriber.get_message(timeout=seconds)
    if message is None:
        raise redis.exceptions.TimeoutError
    return message
