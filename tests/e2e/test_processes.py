"""Processes of one board: what they refuse to start on, what they wait for, and how they leave."""

import contextlib
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import select, update
from sqlalchemy.engine import make_url

from board import settings
from board.access.crypto import new_key
from board.db.clock import now
from board.db.engine import Database
from board.db.migrate import upgrade
from board.db.schema import Meta, table_of
from board.rooms import open_board
from board.tasks.bodies import TaskIn
from board.tasks.models import attempts, tasks
from board.worker.models import workers
from tests.heart import CALLER
from tests.rig.board import UNHANDLED, BoardProcess, RunBoard, StartBoard
from tests.rig.ports import free_port
from tests.rig.postgres import Postgres, PostgresServer
from tests.rig.proxy import Proxy
from tests.rig.trial_package import TrialPackage
from tests.rig.valkey import ValkeyServer

NAP = "types: [{name: nap, handler: {use: nap, side_effects: false}, require_id: false}]\n"
META = table_of(Meta)
LEAVES = 10.0  # seconds: after them a service manager kills


@contextlib.contextmanager
def opened(url: str) -> Iterator[Database]:
    db = Database(url)
    yield db
    db.close()


def get(url: str, timeout: float = 10) -> httpx2.Response:
    with httpx2.Client(trust_env=False, verify=False, timeout=timeout) as client:
        return client.get(url)


def until(holds: Callable[[], Any], timeout: float = 30.0) -> float:
    """Wait until it holds; the seconds it took."""
    begin = time.monotonic()
    while not holds():
        assert time.monotonic() - begin < timeout, "it never came to that"
        time.sleep(0.05)
    return time.monotonic() - begin


def said(process: BoardProcess, code: int = 1, timeout: float = 60.0) -> str:
    """What a process said that ended by itself with this code."""
    assert process.wait(timeout) == code, process.log
    assert not UNHANDLED.search(process.log), process.log
    return process.log


def four(start: StartBoard, url: str, env: dict[str, str] | None = None) -> list[BoardProcess]:
    """Two of each role, started at the same moment."""
    with ThreadPoolExecutor(4) as pool:
        roles = ("api", "worker", "api", "worker")
        return list(pool.map(lambda role: start(role, database_url=url, env=env, wait=False), roles))


# -- what they refuse to start on -------------------------------------------------------------------------------------


def test_four_at_once_on_an_empty_database_all_stop_and_name_the_command(
    board_process: StartBoard, empty_database_url: str
) -> None:
    for process in four(board_process, empty_database_url):
        assert "The database is empty. Run `board migrate` first" in said(process)


def test_four_at_once_on_a_migrated_database_all_start(board_process: StartBoard, database_url: str) -> None:
    apis = four(board_process, database_url)
    for process in apis:
        if "api" in process.log_file.name:
            process.wait_until_healthy()
            assert get(f"{process.url}/readyz").json()["status"] == "ready"
        else:
            process.wait_for_log("The worker ")
    with opened(database_url) as db, db.read() as connection:
        alive = connection.execute(select(workers.c.name).where(workers.c.stopped_at.is_(None))).all()
        assert len(alive) == 2


def test_a_wrong_key_and_an_old_schema_are_named(
    board_process: StartBoard, run_board: RunBoard, database_url: str
) -> None:
    right, wrong = new_key(), new_key()
    first = board_process("worker", database_url=database_url, env={"BOARD_ENCRYPTION_KEY": right})
    first.stop()

    def refused(key: str) -> list[str]:
        env = {"BOARD_ENCRYPTION_KEY": key}
        both = [board_process(role, database_url=database_url, env=env, wait=False) for role in ("api", "worker")]
        return [said(process) for process in both]

    for log in refused(wrong):
        assert "was set up with another encryption key" in log
    with opened(database_url) as db, db.write() as tx:
        tx.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    for log in refused(right):
        assert re.search(r"has schema 0001, this program needs .* Run `board migrate`", log)


def test_a_second_worker_on_sqlite_is_warned_and_a_second_machine_refused(
    board_process: StartBoard, sqlite_url: str
) -> None:
    first = board_process("worker", database_url=sqlite_url)
    second = board_process("worker", database_url=sqlite_url)
    assert "Another worker uses this SQLite database too" in second.log
    assert "Another worker" not in first.log
    for process in (first, second):
        process.ask_to_stop()
    for process in (first, second):
        process.stop()
    with opened(sqlite_url) as db, db.write() as tx:  # as if the first were on another machine, and alive
        tx.execute(update(workers).values(host="far@0000", stopped_at=None, seen_at=now(60)))
    for refused in [board_process(role, database_url=sqlite_url, wait=False) for role in ("worker", "up", "api")]:
        log = said(refused)
        assert "on another machine uses this SQLite database" in log
        assert "PostgreSQL" in log


# -- health -----------------------------------------------------------------------------------------------------------


def test_a_worker_tells_its_health_at_a_port_of_its_own(
    board_process: StartBoard, database_url: str, postgres: Postgres
) -> None:
    port = free_port()
    worker = board_process("worker", "--health-port", str(port), database_url=database_url)
    base = f"http://127.0.0.1:{port}"
    assert get(f"{base}/healthz").json() == {"status": "ok"}
    ready = get(f"{base}/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    assert ready.json()["checks"] == {
        "database": "ok",
        "migrations": "ok",
        "key": "ok",
        "storage": "ok",
        "worker": "ok",
    }
    assert get(f"{base}/api/v1/tasks").status_code == 404
    with opened(database_url) as db, db.write() as tx:
        tx.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    unready = get(f"{base}/readyz")
    assert unready.status_code == 503
    assert "board migrate" in unready.json()["checks"]["migrations"]
    assert worker.stop() == 0


def test_a_health_port_that_is_taken_is_said(board_process: StartBoard, sqlite_url: str) -> None:
    other = board_process("api", database_url=sqlite_url)
    port = other.url.rpartition(":")[2]
    refused = board_process("worker", "--health-port", port, database_url=sqlite_url, wait=False)
    assert f"Cannot listen on 0.0.0.0:{port}" in said(refused)


@pytest.mark.alone
def test_readyz_answers_though_the_database_does_not(
    board_process: StartBoard, postgres_proxy: tuple[Proxy, str]
) -> None:
    proxy, url = postgres_proxy
    port = free_port()
    worker = board_process("worker", "--health-port", str(port), database_url=url)
    api = board_process("api", database_url=url)
    proxy.freeze()
    for base in (f"http://127.0.0.1:{port}", api.url):
        begin = time.monotonic()
        answer = get(f"{base}/readyz")
        assert time.monotonic() - begin < 5
        assert answer.status_code == 503
        assert "does not answer" in answer.json()["checks"]["database"]
        assert get(f"{base}/healthz").status_code == 200
    assert worker.stop(LEAVES) == 0
    assert api.stop(LEAVES) == 0


# -- a database that is gone, and one that is away --------------------------------------------------------------------


def remove(url: str, postgres: Postgres) -> None:
    if url.startswith("sqlite"):
        path = Path(make_url(url).database or "")
        for name in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            name.unlink(missing_ok=True)
    else:
        postgres.drop(url)


@pytest.mark.parametrize(("role", "how"), [("worker", "removed"), ("up", "replaced")])
def test_who_works_on_a_database_that_is_gone_for_good_ends_by_itself(
    board_process: StartBoard, database_url: str, postgres: Postgres, role: str, how: str
) -> None:
    process = board_process(role, database_url=database_url)
    if role == "up":
        process.wait_for_log("The board is at")
    begin = time.monotonic()
    if how == "removed":
        remove(database_url, postgres)
    else:
        with opened(database_url) as db, db.write() as tx:
            tx.execute(update(META).where(META.c.key == "installation_id").values(value="another"))
    log = said(process, timeout=30)
    assert time.monotonic() - begin < 30
    [sentence] = re.findall(r"The database that this process was started on is gone: .*", log)
    assert "BOARD_DATABASE_URL" in sentence


def test_a_database_that_is_away_for_a_while_is_waited_for(
    board_process: StartBoard,
    run_board: RunBoard,
    postgres_server: PostgresServer,
    trial_package: TrialPackage,
    tmp_path: Path,
) -> None:
    url = postgres_server.url()
    upgrade(url)
    env = {**trial_package.environment, "BOARD_DATABASE_URL": url, "BOARD_LEASE": "3s"}
    (tmp_path / "nap.yaml").write_text(NAP)
    assert run_board("types", "apply", "nap.yaml", env=env).returncode == 0
    api, worker = (board_process(role, env=env, wait=False) for role in ("api", "worker"))
    api.wait_until_up()
    worker.wait_until_up()
    long = api.api.post("/tasks", json={"type": "nap", "task_id": "long", "payload": {"seconds": 3}})
    assert long.status_code == 201
    until(lambda: api.api.get("/tasks/long").json()["status"] == "running")
    postgres_server.stop()
    worker.wait_for_log("could not")
    refused = api.api.get("/tasks")
    assert refused.status_code == 503
    assert refused.json()["code"] == "unavailable"
    assert refused.headers["retry-after"]
    time.sleep(12)  # more than two looks: an absence must not be taken for an end
    postgres_server.start()
    until(lambda: api.api.post("/tasks", json={"type": "nap", "task_id": "after"}).status_code in (200, 201))
    for task_id in ("after", "long"):
        until(lambda task_id=task_id: api.api.get(f"/tasks/{task_id}").json()["status"] == "done")
    assert worker.stop(LEAVES) == 0
    assert worker.log.count("could not claim work") <= 3, "not a line a second"
    assert api.stop(LEAVES) == 0


# -- how they leave ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["worker", "up", "api"])
def test_a_stop_is_quick_though_the_network_swallows_everything(
    board_process: StartBoard,
    run_board: RunBoard,
    postgres_proxy: tuple[Proxy, str],
    trial_package: TrialPackage,
    tmp_path: Path,
    role: str,
) -> None:
    proxy, url = postgres_proxy
    env = {**trial_package.environment, "BOARD_DATABASE_URL": url}
    process = board_process(role, env=env)
    if role == "worker":
        (tmp_path / "nap.yaml").write_text(NAP)
        run_board("types", "apply", "nap.yaml", env=env)
        (tmp_path / "tasks.json").write_text('[{"type": "nap", "payload": {"seconds": 60}}]')
        assert run_board("submit", "tasks.json", env=env).returncode == 0
        with opened(url) as db:
            until(lambda: _statuses(db) == ["running"])
    proxy.freeze()
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(_ask_in_vain, process) if role != "worker" else None
        time.sleep(1.5)  # so that everything hangs that regularly asks
        begin = time.monotonic()
        assert process.stop(LEAVES) == 0
        assert time.monotonic() - begin < LEAVES
        if asking:
            asking.result()
    assert not UNHANDLED.search(process.log)


def _ask_in_vain(process: BoardProcess) -> None:
    """So that a request hangs while the process is asked to stop."""
    with contextlib.suppress(httpx2.TransportError):
        assert process.api.get("/tasks").status_code >= 500


def _statuses(db: Database) -> list[str]:
    with db.read() as connection:
        return list(connection.execute(select(tasks.c.status).order_by(tasks.c.id)).scalars())


@pytest.mark.parametrize("role", ["worker", "up", "api"])
def test_a_stop_is_quick_though_sqlite_is_locked(board_process: StartBoard, sqlite_url: str, role: str) -> None:
    process = board_process(role, database_url=sqlite_url)
    with opened(sqlite_url) as db, db.write():
        time.sleep(1.5)
        begin = time.monotonic()
        assert process.stop(LEAVES) == 0
        assert time.monotonic() - begin < LEAVES


@pytest.mark.parametrize("dies", ["frozen", "killed"])
@pytest.mark.parametrize("role", ["worker", "up", "api"])
def test_a_stop_is_quick_though_redis_is_dead(
    request: pytest.FixtureRequest, board_process: StartBoard, valkey_server: ValkeyServer, role: str, dies: str
) -> None:
    """On each database once for each way to die; with somebody on the line, where somebody can be."""
    database = "sqlite" if (role == "up") == (dies == "frozen") else "postgres"
    url: str = request.getfixturevalue(f"{database}_url")
    process = board_process(role, database_url=url, env={"BOARD_REDIS_URL": valkey_server.url})
    with ThreadPoolExecutor(1) as pool:
        following = None
        if role != "worker":
            types = {"types": [{"name": "ask", "handler": {"use": "none"}}]}
            assert process.api.post("/types", json=types).is_success
            assert process.api.post("/tasks", json={"type": "ask", "task_id": "T-1"}).status_code == 201
            heard = threading.Event()
            following = pool.submit(_follow, process, heard)
            assert heard.wait(30)
        if dies == "frozen":
            valkey_server.freeze()  # nobody has noticed yet
        else:
            valkey_server.stop()
            process.wait_for_log("signals over Redis are interrupted")
        begin = time.monotonic()
        assert process.stop(LEAVES) == 0
        assert time.monotonic() - begin < LEAVES
        if following is not None:
            assert following.result().startswith("event: status")
    assert not UNHANDLED.search(process.log)


def _follow(process: BoardProcess, heard: threading.Event) -> str:
    """What somebody hears who follows a task until the server hangs up. heard: set with the first of it."""
    told = ""
    with process.api as client, client.stream("GET", "/tasks/T-1/stream") as answer:
        for piece in answer.iter_text():
            told += piece
            heard.set()
    return told


@pytest.mark.alone
@pytest.mark.parametrize("role", ["worker", "up"])
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_leaves_at_once(
    board_process: StartBoard, sqlite_url: str, role: str, signum: signal.Signals
) -> None:
    process = board_process(role, database_url=sqlite_url)
    if role == "up":
        process.wait_for_log("The board is at")
    with opened(sqlite_url) as db, db.write():  # so that the first stop takes its time
        process.signal(signum)
        time.sleep(0.5)
        begin = time.monotonic()
        process.signal(signum)
        assert process.wait(5) == 128 + signum
        assert time.monotonic() - begin < 1


def test_a_rolling_restart_under_load_loses_nothing_and_burns_no_attempt(
    board_process: StartBoard, run_board: RunBoard, postgres_url: str, trial_package: TrialPackage, tmp_path: Path
) -> None:
    """Three workers, each stopped and followed by a new one while tasks run; some take longer than a stop waits."""
    env = {**trial_package.environment, "BOARD_DATABASE_URL": postgres_url, "BOARD_CONCURRENCY": "4"}
    (tmp_path / "nap.yaml").write_text(NAP)
    assert run_board("types", "apply", "nap.yaml", env=env).returncode == 0
    first = [board_process("worker", env=env, wait=False) for _ in range(3)]
    for process in first:
        process.wait_until_up()
    board = open_board(settings.load(database_url=postgres_url, data_dir=tmp_path / "data"))
    naps = [3.0 if number % 4 == 0 else 0.2 for number in range(60)]
    with opened(postgres_url) as db:
        for old in first:
            with board.db.write() as tx:
                for nap in naps:
                    board.intake.take(tx, TaskIn(type="nap", payload={"seconds": nap}), CALLER)
            until(lambda old=old: _runs(db, old))
            assert old.stop(LEAVES) == 0
            board_process("worker", env=env)
        until(lambda: set(_statuses(db)) == {"done"}, 60)
        with db.read() as connection:
            counts = connection.execute(select(tasks.c.retry_count, tasks.c.crash_count)).all()
            outcomes = list(connection.execute(select(attempts.c.outcome)).scalars())
    board.close()
    assert counts == [(0, 0)] * len(naps) * 3
    assert outcomes.count("succeeded") == len(naps) * 3
    assert set(outcomes) == {"succeeded", "handed_back"}, "some were longer than a stop waits"


def _runs(db: Database, worker: BoardProcess) -> bool:
    """Whether a worker is in the middle of a task that takes longer than a stop waits."""
    mine = tasks.c.lease_owner.contains(f"-{worker.pid}-") & (tasks.c.status == "running")
    with db.read() as connection:
        return connection.execute(select(tasks.c.id).where(mine)).first() is not None
