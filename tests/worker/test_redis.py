"""Losing Redis costs time, never work: real workers, and a real server that is emptied, ended, frozen or not there."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis

from board import settings
from board.db.migrate import upgrade
from board.rooms import open_board
from board.worker.registry import load_handlers
from tests.rig.ports import free_port
from tests.rig.valkey import ValkeyServer
from tests.rig.working import OpenWorking, Probe, WorkingBoard
from tests.worker.conftest import StartWorker, WorkerProcess
from tests.worker.worker_process import trial

# What a process of its own does about Redis has nothing to do with the database: one of the two is enough.
one_database = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
LEAVES = 10.0  # seconds: after them a service manager kills


@pytest.fixture
def board(working: OpenWorking, valkey_server: ValkeyServer) -> WorkingBoard:
    """The same board in this process: it puts work in and looks on, and does none itself."""
    board = working(Probe(trial, name="trial"), start=False, redis_url=valkey_server.url)
    board.type("trial", use="trial")
    return board


def put(board: WorkingBoard, begin: int, end: int, sleep: float = 0.02) -> None:
    for number in range(begin, end):
        board.submit(f"T-{number}", payload={"sleep": sleep}, priority=f"P{number % 4}")


def all_done_once(board: WorkingBoard, number: int, timeout: float = 60.0) -> None:
    names = [f"T-{n}" for n in range(number)]
    board.until(lambda: all(board.task(name)["status"] == "done" for name in names), timeout)
    assert {board.task(name)["lease_token"] for name in names} == {1}


def said(worker: WorkerProcess, text: str, times: int = 1) -> bool:
    return worker.log.count(text) >= times


def filled(board: WorkingBoard, worker: WorkerProcess, times: int = 1) -> None:
    board.until(lambda: said(worker, "the queue in Redis was filled", times), timeout=30)


def test_an_emptied_redis_loses_nothing(board: WorkingBoard, worker: StartWorker, valkey_server: ValkeyServer) -> None:
    """B033: FLUSHALL with a hundred tasks waiting."""
    process = worker(BOARD_REDIS_URL=valkey_server.url)
    filled(board, process)
    put(board, 0, 100)
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    filled(board, process, times=2)
    all_done_once(board, 100)
    assert "Redis is away" not in process.log


@one_database
def test_a_restart_without_the_data_and_work_that_came_meanwhile(
    board: WorkingBoard, worker: StartWorker, valkey_server: ValkeyServer
) -> None:
    """B033: killed in mid-run and started again empty; meanwhile work is put in and done as usual."""
    process = worker(BOARD_REDIS_URL=valkey_server.url)
    filled(board, process)
    put(board, 0, 60)
    valkey_server.stop()
    began = time.monotonic()
    put(board, 60, 100)
    assert time.monotonic() - began < 20, "putting in does not wait for Redis"
    board.wait("T-0", "done")
    board.until(lambda: said(process, "Redis is away: It cannot be reached"), timeout=30)
    valkey_server.start()
    filled(board, process, times=2)
    all_done_once(board, 100)
    assert process.log.count("Redis is away") == process.log.count("Redis is back") == 1


@pytest.mark.alone
def test_a_redis_that_is_silent_holds_up_neither_the_work_nor_the_stop(
    board: WorkingBoard, worker: StartWorker, valkey_server: ValkeyServer
) -> None:
    process = worker(BOARD_REDIS_URL=valkey_server.url)
    filled(board, process)
    put(board, 0, 20)
    valkey_server.freeze()
    put(board, 20, 60)
    all_done_once(board, 60)
    board.submit("long", payload={"sleep": 60})
    board.wait("long", "running")
    began = time.monotonic()
    assert process.terminate() == 0
    assert time.monotonic() - began < LEAVES
    assert board.task("long")["status"] == "pending"
    assert process.log.count("Redis is away") == 1
    began = time.monotonic()
    board.close()
    assert time.monotonic() - began < 3.0
    valkey_server.thaw()


@one_database
def test_a_redis_that_is_not_there_yet_is_waited_for_in_the_background(
    board: WorkingBoard, worker: StartWorker, valkey_server: ValkeyServer
) -> None:
    valkey_server.stop()
    process = worker(BOARD_REDIS_URL=valkey_server.url)
    put(board, 0, 20)
    all_done_once(board, 20)
    assert "the queue in Redis was filled" not in process.log
    put(board, 20, 40, sleep=0.5)
    valkey_server.start()
    filled(board, process)
    all_done_once(board, 40)
    assert process.terminate() == 0


@one_database
def test_the_stop_is_quick_when_redis_refuses(board: WorkingBoard, worker: StartWorker) -> None:
    process = worker(BOARD_REDIS_URL=f"redis://127.0.0.1:{free_port()}/0")
    put(board, 0, 4)
    all_done_once(board, 4)
    began = time.monotonic()
    assert process.terminate() == 0
    assert time.monotonic() - began < LEAVES


@one_database
def test_two_boards_on_one_redis_do_each_their_own_work(
    board: WorkingBoard, worker: StartWorker, valkey_server: ValkeyServer, tmp_path: Path
) -> None:
    """Two databases with the same internal ids, two workers, one Redis."""
    url, folder = f"sqlite:///{tmp_path / 'other.db'}", tmp_path / "other"
    upgrade(url)
    loaded = settings.load(database_url=url, data_dir=folder, redis_url=valkey_server.url)
    own: Any = {"trial": Probe(trial, name="trial")}
    with closing(WorkingBoard(open_board(loaded, handlers=lambda: load_handlers() | own))) as other:
        other.type("trial", use="trial")
        mine = worker(BOARD_REDIS_URL=valkey_server.url)
        theirs = worker(
            BOARD_REDIS_URL=valkey_server.url, BOARD_DATABASE_URL=url, BOARD_DATA_DIR=str(folder), BOARD_CONCURRENCY="4"
        )
        filled(board, mine)
        filled(other, theirs)
        put(board, 0, 40)
        put(other, 0, 30)
        all_done_once(board, 40)
        all_done_once(other, 30)
        for it, process in ((board, mine), (other, theirs)):
            [owner] = {attempt["worker"] for n in range(30) for attempt in it.attempts(f"T-{n}")}
            assert f"-{process.pid}-" in owner
