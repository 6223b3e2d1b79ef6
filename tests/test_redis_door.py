"""The door to Redis: what is pinned, who is told when it is away, and that it comes back by itself."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
import redis

from board.queue.redis_lines import Change, Place, RedisLines
from board.redis_door import (
    TIMEOUT_SECONDS,
    Keys,
    RedisAway,
    RedisDoor,
    about,
    connect,
    connect_async,
    reason,
    weakness,
)
from board.settings import SettingsError, load
from board.tasks.states import Pool
from tests.rig.ports import free_port
from tests.rig.valkey import ValkeyServer

BACK = 20.0  # seconds until a server that is there again must have been seen; it takes about one


def test_every_name_bears_the_installations_id_as_hash_tag() -> None:
    assert Keys("ab12")("ready", "board", 0) == "board:{ab12}:ready:board:0"


def test_behaviour_is_pinned_whatever_the_address_says(redis_url: str) -> None:
    with connect(f"{redis_url}?protocol=3&socket_timeout=99") as client:
        connection: Any = client.connection_pool.make_connection()
        assert connection.protocol == 2
        assert client.get_connection_kwargs()["socket_timeout"] == TIMEOUT_SECONDS
        assert client.set("pinned", "ä") is True
        assert client.get("pinned") == "ä"


async def test_over_a_socket_and_with_tls_both_kinds_of_client(valkey_server: ValkeyServer) -> None:
    with connect(valkey_server.socket_url) as client:
        assert client.set("over-a-socket", "1") is True
    async with connect_async(valkey_server.socket_url) as waiting:
        assert await waiting.get("over-a-socket") == "1"
    for pool in (connect("rediss://host/1").connection_pool, connect_async("rediss://host/1").connection_pool):
        connection: Any = pool.make_connection()
        assert "SSLConnection" in type(connection).__name__
        assert connection.db == 1


@pytest.mark.parametrize(
    "wrong",
    [
        "redis://:s3cret@host:abc/0",
        "redis://:s3cret@host:99999/0",
        "redis://:s3cret@host/zero",
        "redis://:s3cret@host/0?no_such_option=1",
        "redis://:s3cret@host/0?max_connections=many",
        "http://:s3cret@host/0",
    ],
)
def test_a_wrong_address_is_refused_by_name_and_its_password_not_repeated(wrong: str) -> None:
    with pytest.raises(SettingsError, match="BOARD_REDIS_URL") as caught:
        load(redis_url=wrong)
    assert "s3cret" not in str(caught.value)


def test_making_a_door_asks_nothing_and_the_first_question_says_what_is_wrong() -> None:
    door = RedisDoor(f"redis://:s3cret@127.0.0.1:{free_port()}/0", "ab12")
    assert door.trouble is None
    with pytest.raises(RedisAway, match=r"cannot be reached.*BOARD_REDIS_URL") as caught:
        door.run(lambda client: client.ping())
    assert "s3cret" not in str(caught.value)
    assert door.trouble == str(caught.value)
    door.close()


def test_a_wrong_password_is_named(valkey_server: ValkeyServer) -> None:
    with connect(valkey_server.url) as client:
        client.config_set("requirepass", "right")
    door = RedisDoor(valkey_server.url.replace("//", "//:s3cret@"), "ab12")
    with pytest.raises(RedisAway, match="refuses the name or password in BOARD_REDIS_URL"):
        door.run(lambda client: client.ping())
    door.close()


def test_a_user_who_may_nothing_dangerous_can_do_all_that_is_needed(valkey_server: ValkeyServer) -> None:
    with connect(valkey_server.url) as client:
        rules = ["on", ">pw", "~board:*", "&board:*", "+@all", "-@dangerous"]
        client.execute_command("ACL", "SETUSER", "board", *rules)
    door = RedisDoor(valkey_server.url.replace("//", "//board:pw@"), "ab12")
    lines = RedisLines(door)
    lines.finish_filling(lines.begin_filling())
    assert lines.complete()
    lines.write([Change(1, "board", Place(1, "board", 2, 1, datetime(2026, 1, 1, tzinfo=UTC)), True)])
    assert lines.take(Pool.BOARD, [2], (1, 1, 1, 1), 5, 5, datetime(2026, 1, 2, tzinfo=UTC)) == {1: 2}
    assert sum(lines.sizes().values()) == 0
    assert door.run(weakness) is None
    assert door.run(lambda client: about(client, "server")) == {}
    assert door.trouble is None
    door.close()


def test_a_node_of_a_cluster_is_named_as_such() -> None:
    assert "node of a cluster" in reason(redis.exceptions.MovedError("1234 10.0.0.7:6379"))


@pytest.mark.parametrize("end", ["stop", "freeze"])
def test_one_waits_the_others_hear_it_at_once_and_it_comes_back(
    valkey_server: ValkeyServer, caplog: pytest.LogCaptureFixture, end: str
) -> None:
    caplog.set_level(logging.INFO)
    door, back = RedisDoor(valkey_server.url, "ab12"), threading.Event()

    def is_back(client: redis.Redis) -> None:
        client.set(door.keys("back"), "1")
        back.set()

    door.on_back.append(is_back)
    door.run(lambda client: client.ping())
    getattr(valkey_server, end)()
    began = time.monotonic()
    with pytest.raises(RedisAway):
        door.run(lambda client: client.ping())
    assert time.monotonic() - began < 2 * TIMEOUT_SECONDS + 1
    asked = threading.Event()
    for _ in range(1000):  # not one of them reaches for the server
        with pytest.raises(RedisAway):
            door.run(lambda client: asked.set())
    assert not asked.is_set()

    valkey_server.thaw() if end == "freeze" else valkey_server.start()
    assert back.wait(BACK)
    deadline = time.monotonic() + BACK
    while door.trouble is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert door.run(lambda client: client.get(door.keys("back"))) == "1"
    said = [it.getMessage() for it in caplog.records if it.name == "board.redis_door"]
    assert [line.partition(":")[0] for line in said] == ["Redis is away", "Redis is back."]
    door.close()


def test_a_server_that_takes_no_writes_is_not_back(valkey_server: ValkeyServer) -> None:
    door = RedisDoor(valkey_server.url, "ab12")
    with connect(valkey_server.url) as other:
        other.config_set("maxmemory", 1)
        with pytest.raises(RedisAway, match="memory is full"):
            door.run(lambda client: client.set("x", "1"))
        deadline = time.monotonic() + BACK
        while other.info("commandstats")["cmdstat_set"]["rejected_calls"] < 3:  # ours, and two looks at the least
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert door.trouble is not None
        assert "memory is full" in door.trouble
        other.config_set("maxmemory", 0)
        deadline = time.monotonic() + BACK
        while door.trouble is not None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    door.close()


@pytest.mark.alone
def test_many_threads_may_ask_and_closing_does_not_wait(valkey_server: ValkeyServer) -> None:
    door = RedisDoor(valkey_server.url, "ab12")

    def count(_: int) -> Any:
        return door.run(lambda client: client.incr(door.keys("n")))

    with ThreadPoolExecutor(40) as threads:
        assert sorted(threads.map(count, range(400))) == list(range(1, 401))
    valkey_server.freeze()
    began = time.monotonic()
    door.close()
    assert time.monotonic() - began < 0.5
