"""Real workers under full load, killed and restarted: shares, order, and that nothing is lost or done twice."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import func, select

from board.queue.lanes import DEFAULT_WEIGHTS, LANES
from board.tasks.bodies import TaskIn
from board.tasks.models import attempts, task_events, tasks
from tests.heart import CALLER
from tests.rig.board import StartBoard
from tests.rig.working import OpenWorking, Probe, WorkingBoard
from tests.soak import LONGER
from tests.soak.bound import Bound
from tests.worker.conftest import StartWorker, WorkerProcess
from tests.worker.worker_process import trial

ROUND = sum(DEFAULT_WEIGHTS)
WORKERS = 3
# A worker that ends takes the rest of its round along: of each lane at most its weight, which must stay well below 5 %
# of what is counted. So many rounds for each life of a worker keep it below 2.5 %.
ROUNDS_A_LIFE = 40
LIVES = WORKERS + 2 * LONGER
SLEEPS = (0.01, 0.02, 0.04, 0.06)  # of several lengths, so that a worker has always some in hand
TURNS = LIVES * ROUNDS_A_LIFE * ROUND


def put(board: WorkingBoard, names: Iterable[tuple[str, int]], sleeps: Sequence[float]) -> None:
    """Tasks of the given names and priorities, in their order; they run for so many seconds, in turns."""
    bodies = [
        TaskIn.model_validate({"type": "trial", "task_id": name, "priority": f"P{it}", "payload": {"sleep": seconds}})
        for (name, it), seconds in zip(names, itertools.cycle(sleeps), strict=False)
    ]
    intake = board.board.intake
    for begin in range(0, len(bodies), 500):
        some = bodies[begin : begin + 500]
        with board.board.db.write() as tx:
            intake.store(tx, [(it, intake.prepare(tx, it, CALLER)) for it in some], CALLER)


def started(board: WorkingBoard) -> int:
    with board.board.db.read() as connection:
        return connection.execute(select(func.count()).select_from(attempts)).scalar_one()


def lanes_in_order(board: WorkingBoard) -> list[tuple[str, int]]:
    """Task and priority of every attempt, in the order of the claims. Nothing has aged: priority is lane."""
    query = select(tasks.c.task_id, tasks.c.priority).join(attempts, attempts.c.task == tasks.c.id)
    with board.board.db.read() as connection:
        return [(name, priority) for name, priority in connection.execute(query.order_by(attempts.c.id))]


def all_done_once(board: WorkingBoard, names: Collection[str], begun: Path) -> Counter[str]:
    """Every task is done by its last attempt, and whatever came before that was taken back first. Returns how the
    attempts ended. begun: a line of each attempt that any process has begun."""
    query = select(tasks.c.task_id, tasks.c.status, tasks.c.crash_count, tasks.c.retry_count, attempts.c.outcome)
    with board.board.db.read() as connection:
        found = connection.execute(query.outerjoin(attempts).order_by(attempts.c.id)).all()
        done = Counter(connection.execute(select(task_events.c.task).where(task_events.c.kind == "done")).scalars())
    outcomes: dict[str, list[str]] = {}
    for name, status, crashes, retries, outcome in found:
        assert (status, retries) == ("done", 0)
        outcomes.setdefault(name, []).append(outcome)
        assert outcomes[name].count("lease_lost") <= crashes
    assert outcomes.keys() == set(names), "nothing is lost"
    assert len(done) == done.total() == len(names)
    ran = Counter(begun.read_text().split())
    for name, ends in outcomes.items():
        assert ends[-1] == "succeeded"
        assert set(ends[:-1]) <= {"lease_lost", "handed_back"}
        assert 1 <= ran[name] <= len(ends), "never begun without a claim"
    assert ran.keys() == outcomes.keys()
    return Counter(outcome for ends in outcomes.values() for outcome in ends)


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    return tmp_path / "begun"


class Crew:
    """A number of workers, of which one after the other dies or is stopped and has a successor."""

    def __init__(self, start: Callable[[], WorkerProcess]) -> None:
        self._start = start
        self._working = deque(start() for _ in range(WORKERS))
        self._turn = itertools.cycle(["killed", "stopped"])

    def replace_the_oldest(self) -> None:
        oldest = self._working.popleft()
        if next(self._turn) == "killed":
            oldest.kill()
        else:
            assert oldest.terminate() == 0
        self._working.append(self._start())

    @property
    def ready(self) -> bool:
        return all("ready" in it.log for it in self._working)


@pytest.mark.parametrize("queue", ["ledger", "redis"])
def test_shares_hold_and_nothing_is_lost_or_done_twice_while_workers_are_killed(
    request: pytest.FixtureRequest, working: OpenWorking, worker: StartWorker, queue: str, begun: Path
) -> None:
    env = {"BOARD_CONCURRENCY": "8", "BOARD_LEASE": "5s", "BOARD_AGEING_AFTER": "1d", "BOARD_TEST_BEGUN": str(begun)}
    if queue == "redis":
        env["BOARD_REDIS_URL"] = request.getfixturevalue("redis_url")
    board = working(Probe(trial, name="trial"), start=False, redis_url=env.get("BOARD_REDIS_URL", ""))
    board.type("trial", use="trial")
    names = [(f"P{lane}-{n}", lane) for lane in LANES for n in range(DEFAULT_WEIGHTS[lane] * TURNS // ROUND * 5 // 4)]
    put(board, names, SLEEPS)
    crew = Crew(lambda: worker(**env))
    board.until(lambda: crew.ready, timeout=60)
    begin, first = time.monotonic(), started(board)
    for life in range(LIVES - WORKERS):
        due = TURNS * (life + 1) // (LIVES - WORKERS + 1)
        board.until(lambda due=due: started(board) >= due, timeout=600)
        crew.replace_the_oldest()
    board.until(lambda: started(board) >= TURNS, timeout=600)
    pace = (started(board) - first) / (time.monotonic() - begin)
    board.until(lambda: _open(board) == 0, timeout=600)
    outcomes = all_done_once(board, [name for name, _ in names], begun)
    assert outcomes["lease_lost"] > 0, "a worker died with work in hand"
    in_order = lanes_in_order(board)[:TURNS]
    got = Counter(lane for _, lane in in_order)
    shares = {lane: got[lane] * ROUND / TURNS for lane in LANES}
    where = f"{WORKERS} workers on {board.board.db.url.get_backend_name()}, queue in {queue}"
    print(
        f"\n{where}: {TURNS} turns, {pace:.0f}/s; "
        f"of {ROUND} turns {', '.join(f'P{lane} has {share:.2f}' for lane, share in shares.items())}; {dict(outcomes)}"
    )
    for lane, weight in zip(LANES, DEFAULT_WEIGHTS, strict=True):
        assert shares[lane] == pytest.approx(weight, rel=0.05), shares


def _open(board: WorkingBoard) -> int:
    with board.board.db.read() as connection:
        query = select(func.count()).where(tasks.c.status.in_(["pending", "running", "retrying"]))
        return connection.execute(query).scalar_one()


def test_a_task_of_p3_begins_within_its_bound_beside_endless_rush_orders(  # B037
    working: OpenWorking, worker: StartWorker, begun: Path
) -> None:
    """More P0 waits from the first moment on than can begin before the P3 task must have had its turn."""
    board = working(Probe(trial, name="trial"), start=False)
    board.type("trial", use="trial")
    slots, reserved, service = 4, 1, 0.05
    bound = Bound(slots, reserved, service)
    rush = 8 * ROUND * LONGER
    put(board, [("low", 3), *((f"rush-{n}", 0) for n in range(rush))], [service])
    worker(BOARD_CONCURRENCY=str(slots), BOARD_RESERVED_P0_SLOTS=str(reserved), BOARD_TEST_BEGUN=str(begun))
    board.until(lambda: _open(board) == 0, timeout=300)
    order = [name for name, _ in lanes_in_order(board)]
    # The slot that is kept for P0 gives turns besides, one for each that a common slot gives.
    place, most = order.index("low") + 1, bound.turns(3, 0) * slots // (slots - reserved) + 1
    with board.board.db.read() as connection:
        first, low = (
            connection.execute(select(attempts.c.started_at).where(attempts.c.id == number)).scalar_one()
            for number in (1, place)
        )
    print(f"\nP3 began as number {place} (bound {most}), {(low - first).total_seconds():.2f} s after the first")
    assert place <= most
    order.remove("low")
    assert order == [f"rush-{n}" for n in range(rush)], "first come, first served, and all of them"


SECONDS, CALLERS, MANY = 30.0, 8, 8


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_eight_workers_and_eight_callers_on_one_sqlite_file(  # B035
    board_process: StartBoard, database_url: str, working: OpenWorking, worker: StartWorker, begun: Path
) -> None:
    """For half a minute. No call fails or waits long, nothing is lost, nothing runs twice."""
    board = working(Probe(trial, name="trial"), start=False)
    board.type("trial", use="trial")
    apis = [board_process("api", database_url=database_url) for _ in range(2)]
    crew = [worker(BOARD_LEASE="30s", BOARD_TEST_BEGUN=str(begun)) for _ in range(MANY)]
    board.until(lambda: all("ready" in it.log for it in crew), timeout=120)
    stop = threading.Event()
    with ThreadPoolExecutor(CALLERS) as threads:
        callers = [threads.submit(_call, apis[number % 2].api, number, stop) for number in range(CALLERS)]
        stop.wait(SECONDS)
        stop.set()
        answers = [answer for caller in callers for answer in caller.result()]
    board.until(lambda: _open(board) == 0, timeout=300)
    outcomes = all_done_once(board, [name for name, _, _ in answers], begun)
    assert {status for _, status, _ in answers} == {201}
    assert outcomes == {"succeeded": len(answers)}
    slow = statistics.quantiles((seconds for _, _, seconds in answers), n=20)[-1]
    print(f"\n{len(answers)} tasks in {SECONDS:g} s by {CALLERS} callers, {MANY} workers; p95 of a call {slow:.3f} s")
    assert slow < 1.0
    assert all("locked" not in it.log for it in [*apis, *crew])


def _call(client: httpx2.Client, number: int, stop: threading.Event) -> list[tuple[str, int, float]]:
    """The task, the status of the answer and the seconds, of each call."""
    answers = []
    with client:
        while not stop.is_set():
            name = f"C{number}-{len(answers)}"
            begin = time.perf_counter()
            answer = client.post("/tasks", json={"type": "trial", "task_id": name, "priority": f"P{len(answers) % 4}"})
            answers.append((name, answer.status_code, time.perf_counter() - begin))
    return answers
