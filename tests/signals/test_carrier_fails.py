"""A carrier of signals that is cut, away, frozen or silent: it is noticed, and a stop in it is quick."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

import psycopg
import pytest
import redis

from board.ports import Job, Outcome, Success
from board.signals.signal import Changed, Channel
from tests.rig.proxy import Proxy
from tests.rig.valkey import ValkeyServer
from tests.rig.working import Gate, Probe
from tests.signals.pair import QUICK, SOON, Pair, heard_by, settled, until


def cut_connections(pair: Pair) -> int:
    """As when a network cuts them: the server ends every connection that carries signals; how many there were."""
    if pair.redis:
        with redis.Redis.from_url(pair.redis) as client:
            kinds = ("pubsub", "normal")
            return sum(int(client.client_kill_filter(_type=kind, skipme=True)) for kind in kinds)
    with psycopg.connect(pair.url, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND (query LIKE 'LISTEN%' OR query LIKE '%pg_notify%') AND pid <> pg_backend_pid()"
        ).fetchall()
        return len(ended)


def test_connections_that_are_cut_come_back_and_nothing_stays_unheard(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()

    async def wait(job: Job) -> Outcome:
        await gate.passed()
        return Success(result={})

    pair.work(Probe(wait))
    with caplog.at_level(logging.INFO, "board.signals.line"):
        task = pair.submit()
        line = pair.front.signals._line
        assert line is not None
        line.listening.clear()
        assert cut_connections(pair) >= 2
        assert line.listening.wait(SOON)
        gate.open()
        assert asyncio.run(settled(pair.front, task)) == "done"
        assert asyncio.run(settled(pair.front, pair.submit("T-2"))) == "done"
    said = [record.getMessage() for record in caplog.records if record.name == "board.signals.line"]
    name = "Redis" if pair.redis else "PostgreSQL"
    assert 1 <= len([it for it in said if it.startswith(f"signals over {name} are interrupted")]) <= 2, "one a process"


def test_an_outage_is_one_line_of_log_and_a_stop_in_it_is_quick(
    postgres_url: str, valkey_server: ValkeyServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = Pair(postgres_url, valkey_server.url, tmp_path)
    line = made.front.signals._line
    assert line is not None

    def said() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name == "board.signals.line"]

    with caplog.at_level(logging.INFO, "board.signals.line"):
        valkey_server.stop()
        until(lambda: len(said()) == 1)
        for number in range(50):
            made.front.signals.send(Changed(number))
            time.sleep(0.02)
        valkey_server.start()
        until(lambda: len(said()) > 1)
        assert line.listening.wait(SOON)
        valkey_server.stop()
        until(lambda: len(said()) > 2)
    begin = time.monotonic()
    made.close()
    assert time.monotonic() - begin < QUICK
    interrupted, again, once_more = said()
    assert "work goes on" in interrupted
    assert "heard again" in again
    assert "work goes on" in once_more


def test_a_stop_is_quick_though_redis_is_frozen(postgres_url: str, valkey_server: ValkeyServer, tmp_path: Path) -> None:
    made = Pair(postgres_url, valkey_server.url, tmp_path)
    valkey_server.freeze()
    made.front.signals.send(Changed(1))
    begin = time.monotonic()
    made.close()
    assert time.monotonic() - begin < QUICK


@pytest.mark.alone
@pytest.mark.parametrize("over", ["postgres", "redis"])
def test_a_quiet_line_is_asked_for_a_sign_and_stays(
    postgres_url: str,
    redis_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    over: str,
) -> None:
    monkeypatch.setattr(f"board.signals.over_{over}.CHECK_SECONDS", 1.2)  # longer than an answer may take
    made = Pair(postgres_url, redis_url if over == "redis" else "", tmp_path)
    peer = heard_by(made.open({Channel.CALLERS}))
    time.sleep(2.7)  # two questions
    made.front.signals.send(Changed(1))
    until(lambda: Changed(1) in peer)
    made.close()
    assert not [record for record in caplog.records if record.name == "board.signals.line"]


def test_a_redis_that_is_frozen_is_noticed(
    postgres_url: str, valkey_server: ValkeyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("board.signals.over_redis.CHECK_SECONDS", 0.1)
    made = Pair(postgres_url, valkey_server.url, tmp_path)
    line = made.front.signals._line
    assert line is not None
    valkey_server.freeze()
    until(lambda: not line.listening.is_set())
    valkey_server.thaw()
    assert line.listening.wait(SOON)
    made.close()


def test_a_network_that_swallows_everything_is_noticed(
    postgres_proxy: tuple[Proxy, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("board.signals.over_postgres.CHECK_SECONDS", 0.2)
    monkeypatch.setattr("board.signals.over_postgres.ANSWER_SECONDS", 0.2)
    proxy, url = postgres_proxy
    made = Pair(url, "", tmp_path)
    line = made.front.signals._line
    assert line is not None
    proxy.freeze()
    until(lambda: not line.listening.is_set())
    begin = time.monotonic()
    made.front.signals.close()
    assert time.monotonic() - begin < QUICK
