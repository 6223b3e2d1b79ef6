"""Real worker processes that are killed, die of their work, or are told to go."""

import signal
import subprocess
import time

import pytest

from tests.rig.receiver import Receiver, Reply
from tests.rig.standin import RunningStandin
from tests.rig.working import OpenWorking, Probe, WorkingBoard
from tests.worker.conftest import StartWorker, WorkerProcess
from tests.worker.worker_process import trial


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    """The same board in this process: it puts work in and looks on, and does none itself."""
    board = working(Probe(trial, name="trial"), start=False)
    board.type("trial", use="trial")
    return board


def running(board: WorkingBoard, *task_ids: str) -> None:
    board.until(lambda: all(board.task(it)["status"] == "running" for it in task_ids), timeout=30)


def test_tasks_of_a_killed_worker_come_back(board: WorkingBoard, worker: StartWorker) -> None:
    """B029: two tasks in hand, fifty that wait for people, five more to do."""
    board.type("ask", use="none")
    for number in range(50):
        board.submit(f"ask-{number}", type="ask")
    first = worker()
    for number in range(50):
        board.wait(f"ask-{number}", "needs_review", timeout=60)
    for name in ("a", "b"):
        board.submit(name, payload={"sleep": 60})
    running(board, "a", "b")
    second = worker()
    board.until(lambda: "ready" in second.log, timeout=30)
    first.kill()
    for number in range(5):
        board.submit(f"T-{number}")
    for name in ("a", "b", "T-0", "T-1", "T-2", "T-3", "T-4"):
        board.wait(name, "done", timeout=15)
    for name in ("a", "b"):
        task = board.task(name)
        assert (task["crash_count"], task["retry_count"]) == (1, 0)
        assert board.kinds(name) == ["created", "started", "lease_lost", "started", "done"]
        silent, back = board.events(name)[1]["at"], board.events(name)[2]["at"]
        assert (back - silent).total_seconds() < 30
    assert board.task("ask-49")["status"] == "needs_review"


BATCH = 16


@pytest.mark.parametrize("point", ["claimed", "running", "settling"])
def test_a_whole_batch_of_a_killed_worker_comes_back_and_none_is_done_twice(
    board: WorkingBoard, worker: StartWorker, point: str
) -> None:
    """SIGKILL between the claim and the end of a full house: claimed and not begun, at work, and in the very
    transaction that writes how they ended."""
    names = [board.submit(f"T-{number}", payload={"sleep": 60 * (point == "running")}) for number in range(BATCH)]
    slots = {"BOARD_CONCURRENCY": str(BATCH), "BOARD_RESERVED_P0_SLOTS": "0", "BOARD_LEASE": "3s"}
    first = worker(**slots, BOARD_TEST_DIE=point)
    if point == "running":
        running(board, *names)
        first.kill()
    assert first.wait() == -signal.SIGKILL
    assert {board.task(name)["status"] for name in names} == {"running"}, "all of it was in its hands"
    worker(**slots)
    for name in names:
        task = board.wait(name, "done", timeout=30)
        assert (task["crash_count"], task["retry_count"], task["lease_token"]) == (1, 0, 2)
        assert board.kinds(name) == ["created", "started", "lease_lost", "started", "done"]
        assert [attempt["outcome"] for attempt in board.attempts(name)] == ["lease_lost", "succeeded"]


def test_a_task_that_kills_its_worker_is_given_up_and_its_neighbours_are_not(
    board: WorkingBoard, worker: StartWorker, receiver: Receiver
) -> None:
    """B031: ten tasks, one of which ends its worker's process each time."""
    names = [f"T-{number}" for number in range(10)]
    for number, name in enumerate(names):
        payload = {"exit": True} if number == 3 else {"sleep": 0.2}
        board.submit(name, payload=payload, callback_url=receiver.url)
    deaths = 0
    process = worker(BOARD_CONCURRENCY="16")
    end = time.monotonic() + 90
    while not all(board.task(name)["status"] in ("done", "failed") for name in names):
        assert time.monotonic() < end, {name: board.task(name)["status"] for name in names}
        try:
            code = process.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
        assert code == 13
        deaths += 1
        process = worker(BOARD_CONCURRENCY="16")
    assert deaths == 3
    poison = board.task("T-3")
    assert (poison["status"], poison["crash_count"], poison["error_cause"]) == ("failed", 3, "crash")
    assert "worker died 3 times" in poison["last_error"]
    assert [board.task(name)["status"] for name in names].count("done") == 9
    # One closing word each; what a dying worker was just sending goes again later, under the same id.
    assert [len(board.operations(name)) for name in names] == [1] * 10
    assert all(request.headers["webhook-id"].startswith("msg_") for request in receiver.wait_for(1))


def test_a_cancellation_reaches_the_handler_of_another_process(board: WorkingBoard, worker: StartWorker) -> None:
    """Its lease holds for longer than anybody waits here: only the handler's own end ends the task."""
    worker(BOARD_LEASE="10m")
    board.submit(payload={"sleep": 600})
    running(board, "T-1")
    board.cancel("T-1")
    board.wait("T-1", "cancelled", timeout=30)
    assert board.kinds() == ["created", "started", "cancel_requested", "cancelled"]
    assert board.task()["crash_count"] == 0


@pytest.mark.alone
@pytest.mark.parametrize(
    ("role", "payload"), [("worker", {"sleep": 60}), ("worker", {"thread": 60}), ("up", {"thread": 60})]
)
def test_a_stop_signal_hands_long_work_back(
    board: WorkingBoard, worker: StartWorker, role: str, payload: dict[str, int]
) -> None:
    process = worker(role, BOARD_LEASE="60s")
    board.submit(payload=payload)
    running(board, "T-1")
    asked = time.monotonic()
    assert process.terminate() == 0
    assert time.monotonic() - asked < 5
    task = board.task()
    assert (task["status"], task["retry_count"], task["crash_count"]) == ("pending", 0, 0)
    assert board.kinds() == ["created", "started", "handed_back"]
    assert "ERROR" not in process.log


def test_a_run_in_dify_outlives_its_worker(
    board: WorkingBoard, worker: StartWorker, dify_standin: RunningStandin
) -> None:
    """B013: the next worker follows the very run that the killed one had started."""
    connection = {"name": "dify", "kind": "dify", "url": dify_standin.api_url, "key": "app-demo-leads"}
    board.apply(connections=[connection])
    board.type("lead", use="dify.workflow", handler={"connection": "dify"})
    board.submit(type="lead", payload={"text": "A quote, please.", "standin_fault": "slow seconds=4"})
    first = worker()
    board.until(lambda: any(it["external_reference"] for it in board.operations()), timeout=30)
    first.kill()
    worker()
    task = board.wait("T-1", "done", timeout=40)
    assert (task["crash_count"], task["retry_count"]) == (1, 0)
    assert len(dify_standin.app.state.runs) == 1
    [operation] = board.operations()
    assert (operation["status"], operation["tries"]) == ("confirmed", 1)
    assert operation["external_reference"] == dify_standin.app.state.runs[0].id


def kill_during_the_call(
    board: WorkingBoard, worker: StartWorker, receiver: Receiver, *, idempotent: bool
) -> WorkerProcess:
    """A webhook action whose worker is killed between sending and knowing. The second worker is at work then."""
    receiver.reply(Reply(hang=True))
    hook = {"name": "hook", "kind": "webhook", "url": receiver.url, "secret": "s3cret", "idempotent": idempotent}
    board.apply(connections=[hook])
    board.type("publish", use="echo", action={"use": "webhook", "connection": "hook"})
    board.submit(type="publish", payload={"text": "发布"})
    first = worker()
    receiver.wait_for(1, timeout=30)
    first.kill()
    return worker()


def test_a_call_that_a_killed_worker_had_made_is_never_repeated_blindly(
    board: WorkingBoard, worker: StartWorker, receiver: Receiver
) -> None:
    kill_during_the_call(board, worker, receiver, idempotent=False)
    board.wait("T-1", "needs_review", timeout=30)
    [review], [operation] = board.reviews(), board.operations()
    assert (review["reason"], review["operation"]) == ("unknown_outcome", operation["id"])
    assert operation["status"] == "unknown"
    assert len(receiver.requests) == 1
    board.decide("T-1", "not_happened", reason="Nothing came.")
    board.wait("T-1", "done", timeout=30)
    first, second = receiver.requests
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.body == second.body


def test_where_the_receiver_knows_repeats_the_call_is_made_again(
    board: WorkingBoard, worker: StartWorker, receiver: Receiver
) -> None:
    kill_during_the_call(board, worker, receiver, idempotent=True)
    board.wait("T-1", "done", timeout=30)
    first, second = receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == second.headers["idempotency-key"]
    assert first.body == second.body
    assert board.operations()[0]["tries"] == 2
