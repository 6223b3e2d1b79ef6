"""The door to Redis: the one place that makes clients of it. Redis makes the board faster and is never needed.

Whoever asks Redis for something is ready to hear `RedisAway` and knows how to go on without it. The first to find it
away waits for TIMEOUT_SECONDS; from then on everybody hears it at once, until a thread of the door's own has seen that
Redis takes writes again.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import redis
import redis.asyncio.retry
from redis import exceptions
from redis.backoff import NoBackoff
from redis.connection import ConnectionPool, parse_url
from redis.retry import Retry

from board.logs import first_line

log = logging.getLogger(__name__)

T = TypeVar("T")
Pool = TypeVar("Pool", ConnectionPool, redis.asyncio.ConnectionPool)

# An answer takes less than a millisecond. A server that is silent for a second is as good as away: the database
# answers sooner.
TIMEOUT_SECONDS = 1.0
# How often a server that is away is looked for: as soon as people notice, and no load.
LOOK_SECONDS = 1.0
# Said here and not left to the library, whose defaults have changed between its versions. They win over what stands
# behind the "?" of BOARD_REDIS_URL.
PINNED: dict[str, Any] = {
    "protocol": 2,  # RESP2: every server and proxy speaks it, and nothing here needs what RESP3 adds
    "decode_responses": True,  # text in, text out
    "socket_timeout": TIMEOUT_SECONDS,
    "socket_connect_timeout": TIMEOUT_SECONDS,
    # One try. The pool renews connections that a server has closed; a second try at one that is silent would only
    # double the wait, and everything asked of Redis has another way.
    "retry": Retry(NoBackoff(), 0),
    "health_check_interval": 0,  # a question before each command would double its cost; a silent one ends by timeout
    "max_connections": 200,  # more than a process has threads; the limit's own error would pass for an outage
    "driver_info": None,  # no CLIENT SETINFO at each connection: old servers do not know it
}


_DATABASE = re.compile(r"(/\d*)?")  # the path of redis://HOST/NUMBER


class RedisAway(Exception):
    """Redis cannot be used just now; the text says why, in plain words and without its password."""


class Keys:
    """Names of keys and channels: `keys("ready", "board", 0)` is `board:{ID}:ready:board:0`.

    ID is that of the installation, so two boards on one Redis never meet. The braces make it a hash tag: a cluster,
    behind a proxy, keeps all keys of one board together, so that scripts may use several of them.
    """

    def __init__(self, installation: str) -> None:
        self._prefix = f"board:{{{installation}}}"

    def __call__(self, *parts: object) -> str:
        return ":".join((self._prefix, *map(str, parts)))


class RedisDoor:
    """One per process, callable from any thread. Making it asks nothing of Redis. `close()` at the end."""

    def __init__(self, url: str, installation: str) -> None:
        self.keys = Keys(installation)
        # Called with the client when Redis has come back, before anybody else uses it again.
        self.on_back: list[Callable[[redis.Redis], None]] = []
        self._client = connect(url)
        self._lock = threading.Lock()
        self._trouble: str | None = None
        self._closed = threading.Event()

    @property
    def trouble(self) -> str | None:
        """Why Redis is away, as far as is known; None while it is there."""
        return self._trouble

    def run(self, ask: Callable[[redis.Redis], T]) -> T:
        """What `ask` gets from Redis. Raises RedisAway, at once while it is known to be away."""
        if self._trouble is not None:
            raise RedisAway(self._trouble)
        try:
            return ask(self._client)
        except (exceptions.RedisError, OSError) as error:
            why = reason(error)
            self._lose(why)
            raise RedisAway(why) from error

    def close(self) -> None:
        """Closes its connections, without waiting for a server that is silent."""
        self._closed.set()
        self._client.close()

    def _lose(self, why: str) -> None:
        with self._lock:
            if self._trouble is not None or self._closed.is_set():
                return
            self._trouble = why
        self._client.connection_pool.disconnect(inuse_connections=False)  # the idle ones are as dead as this one
        log.warning("Redis is away: %s Work goes on from the database.", why)
        threading.Thread(target=self._look_for_it, name="redis", daemon=True).start()

    def _look_for_it(self) -> None:
        """Until Redis takes writes again: a replica or a full server answers, and is of no use."""
        while not self._closed.wait(LOOK_SECONDS):
            try:
                self._client.set(self.keys("probe"), "1", px=1)
                for follower in self.on_back:
                    follower(self._client)
            except Exception as error:
                self._trouble = reason(error)
                continue
            log.info("Redis is back.")
            self._trouble = None
            return


def connect(url: str, *, answer_within: float | None = TIMEOUT_SECONDS) -> redis.Redis:
    """A client of its own, with its own pool of connections. url: as BOARD_REDIS_URL.

    answer_within: seconds; None for one that waits for messages (a subscriber), which a timeout would cut off.
    Raises ValueError, whose text repeats no part of the address, when it is none.
    """
    return redis.Redis.from_pool(_pool(ConnectionPool, parse_url, url, {"socket_timeout": answer_within}))


def connect_async(url: str) -> redis.asyncio.Redis:
    """The same for an event loop. Waiting for messages there has a time of its own. Raises ValueError as `connect`."""
    retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
    parse = redis.asyncio.connection.parse_url  # its TLS and socket connections are of another kind
    return redis.asyncio.Redis.from_pool(_pool(redis.asyncio.ConnectionPool, parse, url, {"retry": retry}))


def _pool(kind: type[Pool], parse: Callable[[str], Any], url: str, own: dict[str, Any]) -> Pool:
    """A pool of connections as pinned. own: what this kind of client pins otherwise."""
    try:
        if not _DATABASE.fullmatch(urlsplit(url).path) and not url.startswith("unix:"):
            raise ValueError  # the library would silently take database 0
        pool = kind(**(parse(url) | PINNED | own))
        pool.make_connection()  # type: ignore[no-untyped-call] # finds unknown options; does not connect yet
    except TypeError:
        raise ValueError("has an option behind the “?” that does not exist") from None
    except (ValueError, exceptions.RedisError):  # their text repeats the address, password and all
        raise ValueError("is not a Redis address") from None
    return pool


def weakness(client: redis.Redis) -> str | None:
    """What is wrong with a Redis that works, in plain words. Raises what the client raises."""
    policy = about(client, "memory").get("maxmemory_policy", "noeviction")
    if policy == "noeviction":
        return None
    return (
        f"It may throw away what the board keeps there when its memory is full (maxmemory-policy is {policy}). "
        "Nothing is lost, but work slows down; set maxmemory-policy to noeviction, or give the board its own Redis."
    )


def about(client: redis.Redis, section: str) -> dict[str, Any]:
    """What the server tells of itself. Empty where this user may not ask: INFO counts as dangerous there."""
    try:
        found: Any = client.info(section)
    except exceptions.NoPermissionError:
        return {}
    assert isinstance(found, dict)
    return found


def reason(error: BaseException) -> str:
    """Why Redis does not do what it should, and what helps: one sentence or two."""
    match error:
        case exceptions.AuthenticationError():
            return "It refuses the name or password in BOARD_REDIS_URL."
        case exceptions.TimeoutError():
            return f"It did not answer within {TIMEOUT_SECONDS:g} s."
        case exceptions.BusyLoadingError():
            return "It is still loading its data."
        case exceptions.AskError() | exceptions.ClusterDownError():
            return "It is a node of a cluster; the board needs a single server, or a cluster behind a proxy."
        case exceptions.ReadOnlyError():
            return "It is a read-only replica; BOARD_REDIS_URL must lead to the primary."
        case exceptions.OutOfMemoryError():
            return "Its memory is full; give it more (maxmemory)."
        case exceptions.NoPermissionError():
            return f"The user in BOARD_REDIS_URL may not do this: {first_line(error)}."
        case exceptions.ConnectionError() | OSError():
            return f"It cannot be reached ({first_line(error).rstrip('.')}). See BOARD_REDIS_URL."
    return f"It answers with an error: {first_line(error).rstrip('.')}."
