"""The door: pinned addresses, no redirects, no proxies, honest about what has left the house."""

import asyncio
import gzip
import ipaddress
import time
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from board.effects import http
from board.effects.http import Door, Doors
from board.ports import Lost, NotSent, Refused
from tests.rig.ports import free_port
from tests.rig.receiver import Receiver, Reply

LOOPBACK = ipaddress.ip_address("127.0.0.1")


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    made = Door(["127.0.0.1/32"])
    yield made
    await made.close()


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """The name server gives these answers in turn, the last one for ever; returned: the names it was asked for."""
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[Any]:
        asked.append(host)
        return [ipaddress.ip_address(text) for text in answers[min(len(asked), len(answers)) - 1]]

    monkeypatch.setattr(http, "resolve", resolve)
    return asked


async def test_the_address_that_was_checked_is_the_one_that_is_called(
    door: Door, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = resolving(monkeypatch, ["127.0.0.1"], ["10.9.9.9"])
    url = receiver.url.replace("127.0.0.1", "rebind.example.org")
    answer = await door.request("POST", url, content=b"x")
    assert answer.status == 200
    assert asked == ["rebind.example.org"]
    assert receiver.requests[0].headers["host"].startswith("rebind.example.org:")
    with pytest.raises(Refused, match="not a public address"):
        await door.request("POST", url, content=b"x")
    assert len(receiver.requests) == 1


async def test_a_name_with_one_private_address_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, ["93.184.215.14", "10.0.0.1"])
    with pytest.raises(Refused):
        await Door().request("GET", "http://twofaced.example.org/")


async def test_redirects_are_not_followed(door: Door, receiver: Receiver) -> None:
    receiver.reply(Reply(status=302, headers={"Location": f"{receiver.url}/inside"}))
    assert (await door.request("POST", receiver.url, content=b"x")).status == 302
    assert len(receiver.requests) == 1


async def test_proxies_of_the_environment_are_ignored(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    door = Door(["127.0.0.1/32"])
    assert (await door.request("GET", receiver.url)).status == 200
    await door.close()


async def test_a_closed_port_is_not_sent(door: Door) -> None:
    with pytest.raises(NotSent, match="could not be reached"):
        await door.request("POST", f"http://127.0.0.1:{free_port()}/", content=b"x")


async def test_an_unknown_name_is_not_sent(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, [])
    with pytest.raises(NotSent, match="does not resolve"):
        await door.request("POST", "http://nowhere.example.org/", content=b"x")


async def test_a_name_server_that_hangs_is_not_sent(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "resolve", lambda host, port: time.sleep(0.6) or [LOOPBACK])
    with pytest.raises(NotSent, match="no connection within"):
        await door.request("POST", "http://slow.example.org/", content=b"x", timeout=0.3)


@pytest.mark.parametrize("reply", [Reply(hang=True), Reply(close=True), Reply(body=b"x" * 100, drip=0.1)])
async def test_what_was_sent_and_not_answered_is_lost(door: Door, receiver: Receiver, reply: Reply) -> None:
    receiver.reply(reply)
    with pytest.raises(Lost):
        await door.request("POST", receiver.url, content=b"x", timeout=1.5)  # enough to send it
    assert len(receiver.wait_for(1)) == 1


async def test_an_answer_that_is_too_large_is_lost(
    door: Door, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MAX_ANSWER", 1000)
    receiver.reply(Reply(body=b"x" * 1001), Reply(body=b"x" * 1000))
    with pytest.raises(Lost, match="larger than"):
        await door.request("GET", receiver.url)
    assert len((await door.request("GET", receiver.url)).body) == 1000


@pytest.mark.parametrize("value", ["s3cret\r\nX-Evil: 1", "s3cret\0", "s3cret 秘密"])
async def test_a_header_that_http_does_not_allow_is_refused_without_being_shown(
    door: Door, receiver: Receiver, value: str
) -> None:
    with pytest.raises(Refused) as refused:
        await door.request("POST", receiver.url, headers={"x-token": value}, content=b"x")
    assert "s3cret" not in str(refused.value)
    assert receiver.requests == []


@pytest.mark.parametrize(
    "make", [lambda url: f"{url}/\x00", lambda url: url.replace("127.0.0.1", "a" * 300), lambda url: "http://[bad"]
)
async def test_an_address_that_is_none_is_refused(door: Door, receiver: Receiver, make: Callable[[str], str]) -> None:
    with pytest.raises((Refused, NotSent)):
        await door.request("GET", make(receiver.url))
    assert receiver.requests == []


async def test_a_connections_door_leads_to_its_own_host_and_port_only(receiver: Receiver) -> None:
    other = Receiver()
    doors = Doors([])
    try:
        assert (await doors.to(receiver.url).request("GET", receiver.url)).status == 200
        with pytest.raises(Refused):
            await doors.to(receiver.url).request("GET", other.url)
        with pytest.raises(Refused):
            await doors.common().request("GET", receiver.url)
    finally:
        await doors.close()
        other.close()
    assert other.requests == []


async def test_a_kept_connection_is_used_again_and_belongs_to_the_checked_address(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = resolving(monkeypatch, ["127.0.0.1"], ["10.9.9.9"])
    door = Door(["127.0.0.1/32"], keep=True)
    url = receiver.url.replace("127.0.0.1", "rebind.example.org")
    for _ in range(3):
        assert (await door.request("POST", url, content=b"x")).status == 200
    assert len(asked) == 1
    await door.close()


async def test_a_connection_that_was_closed_meanwhile_is_not_used(receiver: Receiver) -> None:
    door = Door(["127.0.0.1/32"], keep=True)
    receiver.reply(Reply(headers={"Connection": "close"}))
    assert (await door.request("POST", receiver.url, content=b"1")).status == 200
    assert (await door.request("POST", receiver.url, content=b"2")).status == 200
    await door.close()


@pytest.mark.parametrize("pack", ["gzip", "deflate"])
async def test_a_packed_answer_is_not_asked_for_but_read(door: Door, receiver: Receiver, pack: str) -> None:
    body = gzip.compress(b"hello") if pack == "gzip" else zlib.compress(b"hello")
    receiver.reply(Reply(body=body, headers={"Content-Encoding": pack}))
    assert (await door.request("GET", receiver.url)).text == "hello"
    assert receiver.requests[0].headers["accept-encoding"] == "identity"


async def test_a_small_packed_answer_cannot_fill_the_memory(door: Door, receiver: Receiver) -> None:
    receiver.reply(Reply(body=gzip.compress(b"0" * (http.MAX_ANSWER + 1)), headers={"Content-Encoding": "gzip"}))
    async with door.stream("GET", receiver.url) as answer:
        assert max([len(piece) async for piece in answer.chunks()]) <= 64 * 1024
    receiver.reply(Reply(body=gzip.compress(b"0" * (http.MAX_ANSWER + 1)), headers={"Content-Encoding": "gzip"}))
    with pytest.raises(Lost, match="larger than"):
        await door.request("GET", receiver.url)


@pytest.mark.parametrize("body", [b"no gzip", gzip.compress(b"hello", mtime=0)[:-9]])
async def test_an_answer_packed_wrongly_is_lost(door: Door, receiver: Receiver, body: bytes) -> None:
    receiver.reply(Reply(body=body, headers={"Content-Encoding": "gzip"}))
    with pytest.raises(Lost, match="pack"):
        await door.request("GET", receiver.url)


async def test_headers_that_never_end_are_lost(door: Door) -> None:
    """A server that sends a byte now and then holds no line: the limit is for the whole call."""
    async with dripping() as url:
        begun = time.monotonic()
        with pytest.raises(Lost):
            await door.request("GET", url, timeout=0.5)
    assert time.monotonic() - begun < 3


@asynccontextmanager
async def dripping() -> AsyncIterator[str]:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            writer.write(b"HTTP/1.1 200 OK\r\n")
            for number in range(1000):
                writer.write(f"x-{number}: y\r\n".encode())
                await writer.drain()
                await asyncio.sleep(0.1)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


async def test_certificates_are_checked(door: Door, receiver: Receiver) -> None:
    """An https address whose host speaks plain HTTP: no TLS, so nothing was sent."""
    with pytest.raises(NotSent):
        await door.request("POST", receiver.url.replace("http://", "https://"), content=b"secret")
    assert receiver.requests == []
