"""The only door to the outside: every HTTP call of the board and its integrations goes through here.

Each connection is made to an address that was checked a moment before, not to a name that might resolve differently
the second time. Redirects are not followed, the environment's proxies are ignored, answers are capped.
"""

from __future__ import annotations

import asyncio
import select
import ssl
import zlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

import httpcore
import httpx

from board.effects.guard import Guard, IpAddress, host_and_port, literal, resolve, written
from board.ports import Answer, Content, Lost, NotSent, Refused, StreamedAnswer

MAX_ANSWER = 16 * 1024**2  # bytes; four times the largest JSON the board itself accepts
CONNECT_SECONDS = 10.0  # a host that does not answer the door in this time is down
# Calls at the same time per process; more wait in line. Above the concurrency of any worker.
MAX_CONNECTIONS = 200
KEPT_CONNECTIONS = 50
# Node.js, and so n8n, closes an idle connection after 5 s; one that is used no longer than this is not just closing.
KEPT_SECONDS = 2.0
_PIECE = 64 * 1024  # bytes that are unpacked in one go, so that a small packed answer cannot fill the memory
# Names are looked up in threads of their own: a name server that hangs must not hold up the board's other threads.
_RESOLVERS = ThreadPoolExecutor(max_workers=32, thread_name_prefix="resolve")


class _Call:
    """What one call is at."""

    connecting = False  # nothing has left the house


_CALL: ContextVar[_Call] = ContextVar("call", default=_Call())  # noqa: B039 - whoever wants to know sets one of its own


class _CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Resolves, checks every address, and connects to one of those very addresses."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception = httpcore.ConnectError(f"{host} does not resolve")
        call = _CALL.get()
        call.connecting = True
        try:
            async with asyncio.timeout(timeout):  # for all of it: nothing has left the house so far
                addresses = await _addresses(host, port)
                for address in addresses:
                    self._guard.check_address(host, port, address)
                for address in addresses[:4]:
                    try:
                        made = await self._network.connect_tcp(
                            str(address), port, timeout, local_address, socket_options
                        )
                        call.connecting = False
                        return _Line(made)
                    except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                        failure = error
        except TimeoutError:
            raise httpcore.ConnectTimeout(f"no connection within {timeout:g} s") from None
        raise failure

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Line(httpcore.AsyncNetworkStream):
    """A connection that has its socket at hand.

    The pool asks every idle connection at every call whether it was closed meanwhile: a dozen times a call where one
    receiver gets many. To find the socket each time costs several times as much as the question itself.
    """

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._socket = stream.get_extra_info("socket")

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return _Line(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        if info != "is_readable" or self._socket is None:
            return self._stream.get_extra_info(info)
        number = self._socket.fileno()
        if number < 0:
            return True  # closed: the next read says so
        asked = select.poll()
        asked.register(number, select.POLLIN)
        return bool(asked.poll(0))


async def _addresses(host: str, port: int) -> list[IpAddress]:
    if (known := literal(host)) is not None:
        return [known]
    return await asyncio.get_running_loop().run_in_executor(_RESOLVERS, resolve, host, port)


class _Streamed:
    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}

    async def chunks(self) -> AsyncIterator[bytes]:
        encoding = self.headers.get("content-encoding", "").lower()
        is_packed = encoding in ("gzip", "x-gzip", "deflate")
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32) if is_packed else None
        try:
            async for chunk in self._response.aiter_raw():
                packed = chunk
                while packed and unpacker is not None:
                    yield unpacker.decompress(packed, _PIECE)
                    packed = unpacker.unconsumed_tail
                if unpacker is None:
                    yield chunk
            if unpacker is not None and not unpacker.eof:
                raise Lost("The answer was cut: its packing has no end.")
        except httpx.HTTPError as error:
            raise Lost(f"The answer was cut: {_words(error)}.") from error
        except zlib.error as error:
            raise Lost("The answer is packed in a way that cannot be read.") from error

    async def read(self) -> bytes:
        body = bytearray()
        async for chunk in self.chunks():
            body += chunk
            if len(body) > MAX_ANSWER:
                raise Lost(f"The answer is larger than {MAX_ANSWER // 1024**2} MB.")
        return bytes(body)


class Door:
    """board.ports.Http for one set of allowed addresses. One per event loop; `close()` it at the end.

    keep: keep connections for a moment, for calls that may be repeated. Else a receiver that closes an idle one just as
    we write would make an outcome unknown.
    """

    def __init__(self, allow: Sequence[str] = (), *, keep: bool = False) -> None:
        self._guard = Guard(allow)
        transport = httpx.AsyncHTTPTransport(trust_env=False)
        transport._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context(),
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=KEPT_CONNECTIONS if keep else 0,
            keepalive_expiry=KEPT_SECONDS,
            network_backend=_CheckedNetwork(self._guard),
        )
        # Packed answers are not asked for; who packs them all the same is understood.
        unpacked = {"accept-encoding": "identity"}
        self._client = httpx.AsyncClient(transport=transport, trust_env=False, follow_redirects=False, headers=unpacked)

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: Content = None,
        timeout: float = 30.0,
    ) -> Answer:
        call = _Call()
        _CALL.set(call)
        try:
            async with (
                asyncio.timeout(timeout),
                self.stream(method, url, headers=headers, content=content, read_timeout=timeout) as answer,
            ):
                return Answer(answer.status, answer.headers, await answer.read())
        except TimeoutError as error:
            if call.connecting:
                raise NotSent(
                    f"{urlsplit(url).netloc} could not be reached: no connection within {timeout:g} s."
                ) from error
            raise Lost(f"No whole answer within {timeout:g} s.") from error

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: Content = None,
        read_timeout: float = 60.0,
    ) -> AsyncIterator[StreamedAnswer]:
        self._guard.split(url)
        limits = httpx.Timeout(read_timeout, connect=min(CONNECT_SECONDS, read_timeout * 0.9), pool=CONNECT_SECONDS)
        try:
            request = self._client.build_request(
                method, url, headers=dict(headers or {}), content=content, timeout=limits
            )
            response = await self._client.send(request, stream=True)
        except (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeError) as error:
            # Their texts repeat the value, and that may be a secret.
            raise Refused("The address or a header holds characters that HTTP does not allow.") from error
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise NotSent(f"{urlsplit(url).netloc} could not be reached: {_words(error)}.") from error
        except httpx.HTTPError as error:
            raise Lost(f"{urlsplit(url).netloc} gave no answer: {_words(error)}.") from error
        try:
            yield _Streamed(response)
        finally:
            await response.aclose()

    async def close(self) -> None:
        await self._client.aclose()


class Doors:
    """All doors of one event loop: the common one, and one for each connection's own host and port.

    An owner who makes a connection to a private host has allowed that host and port by making it.
    """

    def __init__(self, allow: Sequence[str]) -> None:
        self._allow = list(allow)
        self._doors: dict[str, Door] = {}

    def common(self) -> Door:
        return self._door("")

    def repeating(self) -> Door:
        """The common door for calls that may be repeated: it keeps its connections for a moment."""
        if "repeating" not in self._doors:
            self._doors["repeating"] = Door(self._allow, keep=True)
        return self._doors["repeating"]

    def to(self, url: str) -> Door:
        """The door that also leads to the host and port of a connection's address.

        A connection that is not called by HTTP, such as a mail server, gets the common one.
        """
        if url.startswith("smtp"):
            return self.common()
        host, port = host_and_port(url)
        return self._door(f"{written(host)}:{port}")

    async def close(self) -> None:
        for door in self._doors.values():
            await door.close()
        self._doors.clear()

    def _door(self, extra: str) -> Door:
        if extra not in self._doors:
            self._doors[extra] = Door([*self._allow, extra] if extra else self._allow)
        return self._doors[extra]


def _words(error: Exception) -> str:
    return str(error).rstrip(".") or type(error).__name__


__all__ = ["Door", "Doors", "Lost", "NotSent", "Refused"]
