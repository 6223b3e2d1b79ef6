"""Two processes of one board, as two wired boards: one serves callers, the other works.

Whatever finds out by looking is slowed down to minutes, so that what comes in time was heard.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from board import settings
from board.access.rights import key_actor
from board.db.migrate import upgrade
from board.following import Following, look
from board.ports import Job, Outcome, Success
from board.queue import live
from board.rooms import Board, open_board
from board.signals.signal import Call, Changed, Channel, Signal, Text
from board.tasks.bodies import TaskIn
from board.tasks.states import TERMINAL
from board.worker.handing_out import WorkWanted
from board.worker.registry import load_handlers
from tests.heart import CALLER
from tests.rig.board import RunBoard
from tests.rig.postgres import Postgres
from tests.rig.proxy import Proxy
from tests.rig.receiver import Receiver
from tests.rig.valkey import ValkeyServer
from tests.rig.working import Gate, Probe, WorkingBoard

SOON = 15.0  # seconds; far less than any look takes here, far more than a signal
QUICK = 5.0  # a stop takes about one; a service manager waits for ten


class Pair:
    """front: a process that callers ask; `work()` makes one that works. `url`, `redis`: where they meet."""

    def __init__(self, url: str, redis_url: str, folder: Path) -> None:
        self.url, self.redis, self._folder = url, redis_url, folder
        self._opened = ExitStack()
        self.front = self.open({Channel.CALLERS})

    def open(self, channels: set[Channel], *handlers: Any) -> Board:
        loaded = settings.load(
            database_url=self.url,
            redis_url=self.redis,
            data_dir=self._folder / "data",
            concurrency=4,
            allow_private_targets=["127.0.0.1"],
        )
        board = open_board(loaded, handlers=lambda: load_handlers() | {it.name: it for it in handlers})
        self._opened.callback(board.close)
        board.signals.start(channels)
        assert board.signals.wait_until_listening(SOON)
        return board

    def work(self, *handlers: Any) -> WorkingBoard:
        board = self.open({Channel.WORKERS}, *handlers)
        worker = WorkingBoard(board)
        worker.type("trial", "probe")
        worker.apply(types=[{"name": "outside", "handler": {"use": "outside", "side_effects": False}}])
        looked = board.make_consumer()
        looked.looked_at = 0.0
        looked.start()
        self._opened.callback(looked.stop)
        # The first looks are over: from now on it only hears.
        until(lambda: looked.looked_at > 0 and looked._rules is not None)
        return worker

    def submit(self, task_id: str = "T-1", type: str = "trial", **body: Any) -> int:
        with self.front.db.write() as tx:
            taken = self.front.intake.take(tx, TaskIn(type=type, task_id=task_id, **body), CALLER)
        assert taken.id is not None
        return taken.id

    def close(self) -> None:
        self._opened.close()


@pytest.fixture(params=["PostgreSQL", "Redis"])
def pair(
    request: pytest.FixtureRequest, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Pair]:
    monkeypatch.setattr("board.worker.consumer.POLL_SECONDS", 600.0)
    monkeypatch.setattr("board.upkeep.keeper.LOOK_SECONDS", 600.0)  # who leads looks for work as often
    monkeypatch.setattr("board.signals.callers.LOOK_SECONDS", 600.0)
    monkeypatch.setattr("board.api.claims.PAUSE", 600.0)
    made = Pair(postgres_url, request.getfixturevalue("redis_url") if request.param == "Redis" else "", tmp_path)
    yield made
    made.close()


def until(holds: Callable[[], bool], seconds: float = SOON) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.005)


async def settled(board: Board, task: int) -> str:
    """The status a caller is told when the task has ended."""
    with board.signals.callers.open() as caller:
        caller.follow(task)
        document = look(board, caller)
        while document["status"] not in TERMINAL:
            assert await caller.wait(SOON), "nothing was heard"
            document = look(board, caller)
    return str(document["status"])


async def write(job: Job) -> Outcome:
    await job.progress(50, "half")
    await job.text("Good morning")
    return Success(result={})


def test_work_begins_and_its_end_is_told(pair: Pair) -> None:
    pair.work(Probe(write))
    for number in range(5):
        assert asyncio.run(settled(pair.front, pair.submit(f"T-{number}"))) == "done"


def test_what_a_handler_says_is_heard_before_its_end(pair: Pair) -> None:
    pair.work(Probe(write))

    async def follow() -> list[str]:
        with pair.front.signals.callers.open() as caller:
            caller.follow(pair.submit())
            following = Following(pair.front, caller, TERMINAL, after=0, seconds=SOON)
            return [event.decode().split("\n")[0].removeprefix("event: ") async for event in following.events()]

    assert asyncio.run(follow()) == ["status", "status", "progress", "text", "status", "end"]


def test_a_running_task_is_cancelled_from_another_process(pair: Pair) -> None:
    begun, never = Gate(), Gate()

    async def wait(job: Job) -> Outcome:
        begun.open()
        await never.passed()
        raise AssertionError

    pair.work(Probe(wait))
    task = pair.submit()
    begun.wait()
    with pair.front.db.write() as tx:
        pair.front.ledger.cancel(tx, pair.front.ledger.lock(tx, task), CALLER, None)
    pair.front.signals.send(Call.CANCEL)
    assert asyncio.run(settled(pair.front, task)) == "cancelled"


def test_that_a_task_came_to_a_person_is_heard_where_pages_are_open(pair: Pair) -> None:
    worker = pair.work(Probe(write))
    worker.type("ask", "none")

    async def heard() -> bool:
        with pair.front.reviews_changed.listen() as changed:
            # Off the loop, as requests are.
            await asyncio.to_thread(pair.submit, "T-1", "ask")
            await asyncio.wait_for(changed.wait(), SOON)
        return changed.is_set()

    assert asyncio.run(heard())
    worker.wait("T-1", "needs_review", timeout=SOON)


def test_commands_are_heard_at_once(pair: Pair, run_board: RunBoard, tmp_path: Path) -> None:
    gates: list[Gate] = [Gate(), Gate()]

    async def hang(job: Job) -> Outcome:
        gates[0].open()
        await gates[1].passed()
        return Success(result={})

    worker = pair.work(Probe(hang))
    env = {"BOARD_DATABASE_URL": pair.url, "BOARD_REDIS_URL": pair.redis}
    (tmp_path / "task.json").write_text('{"type": "trial", "task_id": "T-1"}')

    def command(*arguments: str) -> None:
        done = run_board(*arguments, env=env)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""

    command("submit", "task.json")
    gates[0].wait(SOON)
    command("cancel", "T-1")
    worker.wait("T-1", "cancelled", timeout=SOON)
    gates[1].open()
    command("requeue", "T-1")
    worker.wait("T-1", "done", timeout=SOON)


def test_a_pause_and_its_end_are_followed(pair: Pair) -> None:
    def pause(paused: bool) -> None:
        with pair.front.db.write() as tx:
            live.change(tx, "key:test", lambda rules: rules.model_copy(update={"paused": paused}))
        pair.front.signals.send(Call.RULES)

    worker = pair.work(Probe(write))
    consumer = worker.board.consumer
    assert consumer is not None
    pause(True)
    until(lambda: consumer._rules is not None and consumer._rules.paused)
    task = pair.submit()
    pause(False)
    assert asyncio.run(settled(pair.front, task)) == "done"


def test_a_call_to_another_system_leaves_at_once(pair: Pair, receiver: Receiver) -> None:
    pair.work(Probe(write))
    task = pair.submit(run_after="2100-01-01T00:00:00Z", callback_url=f"{receiver.url}/told")
    with pair.front.db.write() as tx:
        pair.front.ledger.cancel(tx, pair.front.ledger.lock(tx, task), CALLER, None)
    [call] = receiver.wait_for(1, SOON)
    assert call.path == "/told"


def test_an_outside_worker_who_waits_is_told(pair: Pair) -> None:
    """He waits in one process that callers ask, and the task comes in by another one."""
    pair.work(Probe(write))
    other = pair.open({Channel.CALLERS})

    async def wait() -> None:
        with other.claims.arrivals.listen() as arrived:
            pair.submit(type="outside")
            await asyncio.wait_for(arrived.wait(), SOON)

    asyncio.run(wait())
    assert len(other.claims.take(key_actor("n8n", ["work"]), WorkWanted("w"))) == 1


def heard_by(board: Board) -> list[Signal]:
    """What a board hears from now on, from itself and from others."""
    came: list[Signal] = []
    hear = board.signals._hear

    def listen(signal: Signal) -> None:
        came.append(signal)
        hear(signal)

    board.signals._hear = listen  # type: ignore[method-assign]
    assert board.signals._line is not None
    board.signals._line._heard = listen
    return came


def test_one_does_not_hear_oneself_twice_and_no_other_board(pair: Pair, postgres: Postgres, tmp_path: Path) -> None:
    """Two boards on one Redis, or on one PostgreSQL server, never meet."""
    mine, peer = heard_by(pair.front), heard_by(pair.open({Channel.CALLERS}))
    url = postgres.create()
    upgrade(url)
    stranger = Pair(url, pair.redis, tmp_path / "other")
    theirs = heard_by(stranger.front)
    stranger.front.signals.send(Changed(99))
    for number in range(3):
        pair.front.signals.send(Text(1, 1, number, "x"))
        pair.front.signals.send(Changed(number))
    until(lambda: {Changed(0), Changed(1), Changed(2)} <= set(peer))
    assert [it for it in mine if isinstance(it, Changed)] == [Changed(0), Changed(1), Changed(2)]
    assert Changed(99) not in mine + peer
    assert theirs == [Changed(99)]
    stranger.close()
    postgres.drop(url)


def test_much_at_once_arrives_whole(pair: Pair) -> None:
    """Ten thousand moves and a long text in Chinese: many messages, each within PostgreSQL's limit."""
    peer = heard_by(pair.open({Channel.CALLERS}))
    for number in range(10_000):
        pair.front.signals.send(Changed(10**12 + number))
        if number % 1000 == 0:
            pair.front.signals.send(Text(5, 1, number, "字" * 1000))
    until(lambda: len([it for it in peer if isinstance(it, Changed)]) == 10_000)
    texts = [it for it in peer if isinstance(it, Text)]
    assert "".join(it.text for it in texts) == "字" * 10_000


# -- a carrier that fails ---------------------------------------------------------------------------------------------


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
