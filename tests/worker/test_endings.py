"""Many endings in one commit: each as if it were alone, whatever its neighbours are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import RowMapping, update
from sqlalchemy.exc import OperationalError

from board import settings
from board.db.migrate import upgrade
from board.effects import operations
from board.ports import Cause, ErrorClass, Failure, Job, Outcome, Success, UnknownOutcome
from board.queue.wanted import Scope, Wanted
from board.rooms import open_board
from board.tasks.ledger import Lease, Moved
from board.tasks.models import tasks
from board.tasks.states import Move
from board.worker.ending import Ended
from board.worker.endings import Endings
from tests.heart import WORKER
from tests.rig.postgres import PostgresServer
from tests.rig.working import OpenWorking, Probe, WorkingBoard


async def nothing(job: Job) -> Outcome:
    raise AssertionError("no attempt of this test is run")


class Batch:
    """Tasks that one worker has claimed, and their common end."""

    def __init__(self, board: WorkingBoard, names: Sequence[str], **type_: Any) -> None:
        self.board = board
        board.type(**type_)
        for name in names:
            board.submit(name)
        wanted = Wanted(Scope(), slots=len(names), rest=len(names), worker=WORKER.name, lease=60)
        self.rows = {row["task_id"]: row for row in board.board.queue.claim(wanted).rows}
        assert sorted(self.rows) == sorted(names)

    def end(self, *ended: Ended) -> list[Exception | None]:
        it = self.board.board
        return Endings(it.db, it.ledger, it.catalogue).write(ended)

    def ended(self, name: str, outcome: Outcome | None, operation: int | None = None) -> Ended:
        row = self.rows[name]
        return Ended(row, Lease(row["id"], row["lease_token"]), WORKER, outcome, operation)

    def change(self, name: str, **columns: Any) -> None:
        with self.board.board.db.write() as tx:
            tx.execute(update(tasks).where(tasks.c.task_id == name).values(**columns))

    def announce(self, name: str) -> int:
        wanted = operations.Wanted(f"probe:{name}", "probe.call", "the printer", b"x", b"x", None, False, False)
        ended = self.ended(name, None)
        with self.board.board.db.write() as tx:
            return operations.send(tx, self.rows[name], ended.lease, wanted)[0]


def check_history(board: WorkingBoard, name: str) -> None:
    """The events of a task are numbered without a gap, in the order in which they were written, and tell one story."""
    events = board.events(name)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert all(before["id"] < after["id"] and before["at"] <= after["at"] for before, after in pairwise(events))
    moves = [(event["from_status"], event["to_status"]) for event in events if event["to_status"]]
    assert all(before[1] == after[0] for before, after in pairwise(moves))
    assert moves[-1][1] == board.task(name)["status"]
    assert board.task(name)["event_seq"] == len(events)


def test_each_ends_as_it_would_alone(working: OpenWorking) -> None:
    board = working(Probe(nothing), start=False)
    names = ["good", "same", "retried", "failed", "asked", "stale", "cancelled", "unstorable", "huge", "handed back"]
    names += ["unknown", "late call"]
    batch = Batch(board, names, handler={"judgement": {"summary": "s"}})
    batch.change("stale", lease_token=2, lease_owner="other")
    batch.change("cancelled", cancel_requested=True)
    called = {name: batch.announce(name) for name in ("good", "retried", "unknown", "late call")}
    batch.change("late call", cancel_requested=True)
    answers = batch.end(
        batch.ended("good", Success({"s": "线索", "n": 1}, tokens=7, cost="1 USD", reference="run-1"), called["good"]),
        batch.ended("stale", Success("late")),
        batch.ended("cancelled", Success("late")),
        batch.ended("unstorable", Success({"x": object()})),
        batch.ended("huge", Success(tokens=10**30)),
        batch.ended("same", Success()),
        batch.ended("retried", Failure(ErrorClass.TRANSIENT, Cause.NETWORK, "away"), called["retried"]),
        batch.ended("failed", Failure(ErrorClass.PERMANENT, Cause.UPSTREAM_4XX, "no \0 good", http_status=400)),
        batch.ended("asked", Success({"a": [True]}, ask="partial_result", ask_message="Only half.")),
        batch.ended("handed back", None),
        batch.ended("unknown", UnknownOutcome("Lost."), called["unknown"]),
        batch.ended("late call", Success("late", reference="run-2"), called["late call"]),
    )
    assert answers == [None] * 12
    assert {name: board.task(name)["status"] for name in names} == {
        "good": "done",
        "same": "done",
        "retried": "retrying",
        "failed": "failed",
        "asked": "needs_review",
        "stale": "running",
        "cancelled": "cancelled",
        "unstorable": "failed",
        "huge": "failed",
        "handed back": "pending",
        "unknown": "needs_review",
        "late call": "cancelled",
    }
    assert {name: board.kinds(name)[-1] for name in names} == {
        "good": "done",
        "same": "done",
        "retried": "retry_planned",
        "failed": "failed",
        "asked": "review_asked",
        "stale": "stale_result",
        "cancelled": "cancelled",
        "unstorable": "failed",
        "huge": "failed",
        "handed back": "handed_back",
        "unknown": "outcome_unknown",
        "late call": "cancelled",
    }
    for name in names:
        check_history(board, name)
    assert board.data("good")["result"] == {"s": "线索", "n": 1}
    assert board.data("good")["judgement"]["summary"] == "线索"
    assert board.data("asked")["result"] == {"a": [True]}
    assert board.data("stale")["result"] is board.data("cancelled")["result"] is None
    good = board.attempts("good")[0]
    assert (good["outcome"], good["tokens"], good["cost"], good["reference"]) == ("succeeded", 7, "1 USD", "run-1")
    assert good["finished_at"] >= good["started_at"]
    assert {name: board.attempts(name)[0]["outcome"] for name in names} == {
        "good": "succeeded",
        "same": "succeeded",
        "retried": "failed",
        "failed": "failed",
        "asked": "needs_review",
        "stale": None,
        "cancelled": "cancelled",
        "unstorable": "failed",
        "huge": "failed",
        "handed back": "handed_back",
        "unknown": "unknown",
        "late call": "cancelled",
    }
    retried, failed = board.task("retried"), board.task("failed")
    assert (retried["retry_count"], retried["last_error"], retried["error_cause"]) == (1, "away", "network")
    assert retried["ready_at"] > retried["updated_at"]
    assert (failed["last_error"], board.events("failed")[-1]["data"]["http_status"]) == ("no \ufffd good", 400)
    assert (board.task("good")["lease_owner"], board.task("good")["finished_at"]) == (None, good["finished_at"])
    assert board.reviews("asked")[0]["message"] == "Only half."
    assert board.reviews("unknown")[0]["operation"] == called["unknown"]
    closed = {name: board.operations(name)[0] for name in called}
    assert {name: row["status"] for name, row in closed.items()} == {
        "good": "confirmed",
        "retried": "rejected",
        "unknown": "unknown",
        "late call": "confirmed",
    }
    assert (closed["good"]["external_reference"], closed["late call"]["external_reference"]) == ("run-1", "run-2")
    assert closed["retried"]["last_error"] == "away"


def test_neighbours_share_one_commit(working: OpenWorking) -> None:
    board = working(Probe(nothing), start=False)
    names = [f"T-{number}" for number in range(20)]
    batch = Batch(board, names)
    writers: list[Any] = []
    board.board.ledger.followers.append(lambda tx, moved: writers.append(tx))
    assert batch.end(*(batch.ended(name, Success({"n": name})) for name in names)) == [None] * 20
    assert len({id(tx) for tx in writers}) == 1
    assert [board.data(name)["result"] for name in names] == [{"n": name} for name in names]
    assert {board.task(name)["status"] for name in names} == {"done"}


def test_one_that_cannot_be_stored_spoils_no_neighbour(working: OpenWorking) -> None:
    """The neighbours are still written together, in parts."""
    board = working(Probe(nothing), start=False)
    names = [f"T-{number}" for number in range(16)]
    batch = Batch(board, names)
    writers: list[Any] = []
    board.board.ledger.followers.append(lambda tx, moved: writers.append(tx))
    outcomes = {name: Success({"n": name}) for name in names} | {"T-5": Success(object())}
    assert batch.end(*(batch.ended(name, outcomes[name]) for name in names)) == [None] * 16
    assert {name: board.task(name)["status"] for name in names} == dict.fromkeys(names, "done") | {"T-5": "failed"}
    assert board.task("T-5")["last_error"].startswith("The handler's outcome cannot be stored: ")
    assert len({id(tx) for tx in writers}) == 5  # 0 to 3, 4, 5 alone, 6 and 7, 8 to 15
    for name in names:
        assert len(board.events(name)) == 3
        check_history(board, name)


def test_a_follower_that_fails_on_one_task_holds_up_no_other(working: OpenWorking) -> None:
    def picky(_: Any, moved: Moved) -> None:
        if moved.move is Move.SUCCEED and moved.task["task_id"] == "T-2":
            raise RuntimeError("not this one")

    board = working(Probe(nothing), start=False)
    names = [f"T-{number}" for number in range(6)]
    batch = Batch(board, names)
    board.board.ledger.followers.append(picky)
    assert batch.end(*(batch.ended(name, Success()) for name in names)) == [None] * 6
    others = [name for name in names if name != "T-2"]
    assert {board.task(name)["status"] for name in others} == {"done"}
    # As alone: its outcome cannot be stored, which is a failure that a person sees.
    assert board.task("T-2")["status"] == "failed"
    assert all(board.kinds(name) == ["created", "started", "done"] for name in others)


def test_retries_of_one_batch_wait_each_its_own_time(working: OpenWorking) -> None:
    board = working(Probe(nothing), start=False)
    names = [f"T-{number}" for number in range(4)]
    batch = Batch(board, names)
    waits = {name: 100.0 * (number + 1) for number, name in enumerate(names)}
    batch.end(
        *(
            batch.ended(name, Failure(ErrorClass.QUOTA, Cause.RATE_LIMIT, "slow down", retry_after=waits[name]))
            for name in names
        )
    )
    for name in names:
        row = board.task(name)
        assert row["status"] == "retrying"
        assert 0.75 * waits[name] <= (row["ready_at"] - row["updated_at"]).total_seconds() <= 1.5 * waits[name]


def test_a_claim_of_many_writes_each_its_history(working: OpenWorking) -> None:
    board = working(Probe(nothing), start=False)
    names = [f"T-{number}" for number in range(5)]
    batch = Batch(board, names)
    rows: list[RowMapping] = [batch.rows[name] for name in names]
    assert [row["task_id"] for row in sorted(rows, key=lambda row: row["id"])] == names
    for name in names:
        check_history(board, name)
        started = board.events(name)[-1]
        assert (started["kind"], started["attempt"], started["actor_name"]) == ("started", 1, WORKER.name)
        [attempt] = board.attempts(name)
        assert (attempt["number"], attempt["worker"], attempt["started_at"]) == (1, WORKER.name, started["at"])


def test_a_database_that_is_away_is_asked_once(postgres_server: PostgresServer, tmp_path: Any) -> None:
    url = postgres_server.url()
    upgrade(url)
    loaded = settings.load(database_url=url, data_dir=tmp_path / "data")
    board = WorkingBoard(open_board(loaded, handlers=lambda: {"probe": Probe(nothing)}))  # type: ignore[dict-item]
    try:
        names = [f"T-{number}" for number in range(8)]
        batch = Batch(board, names)
        postgres_server.stop()
        answers = batch.end(*(batch.ended(name, Success()) for name in names))
        assert all(isinstance(answer, OperationalError) for answer in answers)
        assert len({id(answer) for answer in answers}) == 1
        postgres_server.start()
        assert {board.task(name)["status"] for name in names} == {"running"}
        assert batch.end(*(batch.ended(name, Success()) for name in names)) == [None] * 8
        assert {board.task(name)["status"] for name in names} == {"done"}
    finally:
        board.close()


@pytest.mark.parametrize("repeat", range(2))
def test_an_ending_that_is_written_twice_counts_once(working: OpenWorking, repeat: int) -> None:
    board = working(Probe(nothing), start=False)
    batch = Batch(board, ["T-1", "T-2"])
    ended = [batch.ended(name, Success(repeat)) for name in ("T-1", "T-2")]
    assert batch.end(*ended) == [None, None]
    assert batch.end(*ended) == [None, None]
    assert board.kinds("T-1") == ["created", "started", "done", "stale_result"]
    check_history(board, "T-1")
