"""Why a task waits: each reason is told when it holds, in the order in which it counts, and lists stay cheap."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert, select, update

from board import settings
from board.catalogue.apply import apply
from board.db.clock import now, read_now
from board.queue import live, waiting
from board.queue.live import QueueRules
from board.rooms import Board, open_board
from board.tasks.models import tasks
from board.tasks.states import Phase, Status
from board.upkeep import ageing
from board.worker.models import claims
from board.worker.presence import Entry, Presence
from tests.heart import CALLER, new_task, settable_clock
from tests.tasks.test_plans import plans

HOOK = {"name": "hook", "kind": "webhook", "url": "https://n8n.example.org/webhook/x"}
TYPES = [
    {"name": "trial", "handler": {"use": "echo"}},
    {"name": "claimed", "handler": {"use": "outside"}, "require_id": False},
    {"name": "acts", "handler": {"use": "echo"}, "action": {"use": "webhook", "connection": "hook"}},
]
EVERYTHING = ("echo", "none", "outside", "webhook")


@pytest.fixture
def board(database_url: str, tmp_path: Path) -> Iterator[Board]:
    opened = open_board(settings.load(database_url=database_url, data_dir=tmp_path / "data"))
    with opened.db.write() as tx:
        data = {"types": TYPES, "connections": [HOOK]}
        apply(tx, data, handlers=opened.handlers, vault=opened.vault, author="key:test")
    yield opened
    opened.close()


def put(board: Board, task_id: str, **columns: Any) -> None:
    """A task that has been ready for a second, or as the columns say."""
    home = {"home_pool": "outside"} if columns.get("type") == "claimed" else {}
    moment = {"ready_at": datetime.now(UTC) - timedelta(seconds=1)}
    with board.db.write() as tx:
        board.ledger.create(tx, [new_task(task_id, **home)], CALLER)
        tx.execute(update(tasks).where(tasks.c.task_id == task_id).values(**(moment | columns)))


def waits(board: Board, *task_ids: str, places: bool = True) -> Any:
    """`waiting_for` of one task, or of several as a list."""
    with board.db.read() as connection:
        found = {
            row["task_id"]: row
            for row in connection.execute(select(tasks).where(tasks.c.task_id.in_(task_ids))).mappings()
        }
        documents = board.task_documents(connection, [found[it] for it in task_ids], places=places)
    answers = [document["waiting_for"] for document in documents]
    return answers[0] if len(task_ids) == 1 else answers


def crew(board: Board, name: str = "w1", **entry: Any) -> Presence:
    """A worker that is alive."""
    presence = Presence(board.db, Entry(name, 4, **({"handlers": EVERYTHING} | entry)))
    presence.enter()
    return presence


def set_rules(board: Board, **rules: Any) -> None:
    with board.db.write() as tx:
        live.change(tx, "user:li", lambda _: QueueRules(**rules))


LATER = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)


def test_what_the_task_itself_says(board: Board) -> None:
    crew(board)
    put(board, "person", status=Status.NEEDS_REVIEW)
    put(board, "need", unmet_needs=2)
    put(board, "grace", phase=Phase.ACT, has_action=True, type="acts", ready_at=LATER)
    put(board, "closing", phase=Phase.ACT, has_action=False)
    put(board, "retry", status=Status.RETRYING, phase=Phase.ACT, has_action=True, type="acts", ready_at=LATER)
    put(board, "reconciling", status=Status.RETRYING, reconciling=True, ready_at=LATER)
    put(board, "due", ready_at=LATER)
    put(board, "limit", held_by="type:trial")
    put(board, "alone", suspect=True)
    at = LATER.isoformat().replace("+00:00", "Z")
    names = ["person", "need", "grace", "closing", "retry", "reconciling", "due", "limit", "alone"]
    answers = dict(zip(names, waits(board, *names), strict=True))
    assert {name: answer["code"] for name, answer in answers.items()} == {
        name: "grace" if name == "closing" else name for name in names
    }
    assert [answers[name].get("expected_at") for name in ("grace", "retry", "due", "person")] == [at, at, at, None]
    assert "2 other tasks" in answers["need"]["message"]
    assert answers["limit"]["message"] == "The limit of the type trial is reached."


@pytest.mark.parametrize("status", [Status.RUNNING, Status.DONE, Status.FAILED, Status.CANCELLED])
def test_what_runs_or_has_ended_waits_for_nothing(board: Board, status: Status) -> None:
    put(board, "T-1", status=status)
    assert waits(board, "T-1") is None


def test_a_retry_whose_time_has_come_waits_for_a_slot_as_others_do(board: Board) -> None:
    crew(board)
    put(board, "T-1", status=Status.RETRYING)
    assert waits(board, "T-1")["code"] == "queue"


def test_a_pause_of_the_type_or_of_all(board: Board) -> None:
    crew(board)
    put(board, "T-1", type="trial")
    put(board, "T-2", type="acts")
    set_rules(board, paused_types=["trial"])
    assert [it["code"] for it in waits(board, "T-1", "T-2")] == ["paused", "queue"]
    assert waits(board, "T-2")["behind"] == 0, "what is paused is not before it"
    set_rules(board, paused=True)
    assert [it["code"] for it in waits(board, "T-1", "T-2")] == ["paused", "paused"]


def test_without_a_worker_that_takes_it(board: Board) -> None:
    put(board, "T-1", type="acts", lane=3)
    assert (waits(board, "T-1")["code"], waits(board, "T-1")["cause"]) == ("no_worker", "none")
    crew(board, "w1", handlers=["webhook"])
    assert waits(board, "T-1")["cause"] == "handler"
    assert "“echo”" in waits(board, "T-1")["message"]
    crew(board, "w2", types=["trial"])
    assert waits(board, "T-1")["cause"] == "type"
    crew(board, "w3", lanes=[0, 1])
    assert waits(board, "T-1")["cause"] == "lane"
    assert "P3" in waits(board, "T-1")["message"]
    crew(board, "w4", lanes=[3], types=["acts"])
    assert waits(board, "T-1")["code"] == "queue"


def test_an_action_needs_a_worker_with_its_own_handler(board: Board) -> None:
    put(board, "T-1", type="acts", phase=Phase.ACT, has_action=True)
    crew(board, "w1", handlers=["echo"])
    assert waits(board, "T-1")["cause"] == "handler"
    crew(board, "w2", handlers=["webhook"])
    assert waits(board, "T-1")["code"] == "queue"


def test_a_worker_that_stopped_or_went_silent_does_not_count(board: Board) -> None:
    put(board, "T-1", type="trial")
    worker = crew(board)
    with settable_clock(board.db) as at:
        at(60)
        assert waits(board, "T-1")["cause"] == "none"
        with board.db.write() as tx:
            worker.beat(tx, 0)
        assert waits(board, "T-1")["code"] == "queue"
        with board.db.write() as tx:
            worker.leave(tx)
        assert waits(board, "T-1")["cause"] == "none"


def test_outside_it_waits_for_a_program_that_claims_the_type(board: Board) -> None:
    crew(board)
    minute = {"type": "claimed", "pool": "outside", "ready_at": datetime.now(UTC) - timedelta(seconds=61)}
    put(board, "new", type="claimed", pool="outside")
    put(board, "old", **minute)
    assert [it["code"] for it in waits(board, "new", "old")] == ["outside", "no_worker"]
    assert waits(board, "old")["cause"] == "outside"
    put(board, "runs", **minute | {"status": Status.RUNNING})
    assert waits(board, "old")["code"] == "outside", "somebody works on this type"
    with board.db.write() as tx:
        tx.execute(update(tasks).where(tasks.c.task_id == "runs").values(status=Status.DONE))
        task = tx.execute(select(tasks.c.id).where(tasks.c.task_id == "runs")).scalar_one()
        shared = {"task": task, "owner": "key:n8n", "worker": "w", "lease": 60.0, "type": "claimed"}
        tx.execute(insert(claims).values(number=1, made_at=now(-1000), **shared))
    assert waits(board, "old")["code"] == "no_worker"
    with board.db.write() as tx:
        tx.execute(insert(claims).values(number=2, made_at=now(-800), **shared))
    assert (waits(board, "old")["code"], waits(board, "old")["behind"]) == ("outside", 0)


def test_the_place_in_the_lane_is_the_order_of_claims(board: Board) -> None:
    crew(board)
    base = datetime.now(UTC) - timedelta(minutes=1)
    put(board, "c", ready_at=base + timedelta(seconds=1))
    put(board, "b", ready_at=base)
    put(board, "a", ready_at=base + timedelta(seconds=2), rank=0)
    put(board, "later", ready_at=LATER)
    put(board, "needs", ready_at=base, unmet_needs=1)
    put(board, "other lane", ready_at=base, lane=1)
    put(board, "other pool", ready_at=base, pool="outside")
    put(board, "alone", ready_at=base, suspect=True)
    assert [it["behind"] for it in waits(board, "a", "b", "c", "other lane")] == [0, 1, 2, 0]
    assert waits(board, "a")["message"].startswith("It is the next one of lane P2.")
    assert waits(board, "b")["message"] == "1 task is before it in lane P2."
    assert waits(board, "c")["message"] == "2 tasks are before it in lane P2."


def test_a_short_answer_has_the_same_code_and_no_place(board: Board) -> None:
    crew(board)
    put(board, "T-1")
    short = {"code": "queue", "message": "It starts as soon as a worker has a free slot."}
    assert waits(board, "T-1", places=False) == short


def test_places_are_counted_up_to_a_thousand(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "MOST", 2)
    worker = crew(board)
    for _ in range(60):
        worker.took(2)
    with board.db.write() as tx:
        worker.beat(tx, 0)
    for name in "abcde":
        put(board, name, ready_at=datetime.now(UTC) - timedelta(minutes=2) + timedelta(seconds=ord(name)))
    answers = waits(board, *"abcde")
    assert [(it["behind"], it.get("more", False)) for it in answers] == [
        (0, False), (1, False), (2, False), (2, True), (2, True)
    ]  # fmt: skip
    assert answers[3]["message"] == "More than 2 tasks are before it in lane P2."
    assert ["expected_at" in it for it in answers] == [True, True, True, False, False]


def test_the_expected_start_is_an_estimate_from_the_pace_of_all_workers(board: Board) -> None:
    first, second = crew(board, "w1"), crew(board, "w2")
    for _ in range(10):  # ten each within the first ten seconds: 120 a minute together
        first.took(2)
        second.took(2)
    with board.db.write() as tx:
        first.beat(tx, 0)
        second.beat(tx, 0)
    for number in range(4):
        put(board, f"T-{number}", ready_at=datetime.now(UTC) - timedelta(seconds=60 - number))
    put(board, "other lane", lane=3)
    with board.db.read() as connection:
        moment = read_now(connection)
    answer = waits(board, "T-3")
    assert (answer["behind"], answer["estimated"]) == (3, True)
    seconds = (datetime.fromisoformat(answer["expected_at"]) - moment).total_seconds()
    assert 0.5 <= seconds <= 30, "four tasks at two a second, or a little slower by now"
    assert answer["expected_at"] in answer["message"]
    assert "expected_at" not in waits(board, "other lane"), "nothing of that lane has begun"


def test_a_list_of_200_asks_no_more_than_a_list_of_8(board: Board) -> None:
    crew(board)
    with board.db.write() as tx:
        board.ledger.create(tx, [new_task(f"T-{n}", priority=n % 4) for n in range(200)], CALLER)
    names = [f"T-{n}" for n in range(200)]

    def queries(asked: list[str]) -> int:
        sent: list[str] = []

        def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
            sent.append(statement)

        event.listen(board.db._reader, "before_cursor_execute", note)
        waits(board, *asked)
        event.remove(board.db._reader, "before_cursor_execute", note)
        return len(sent)

    waits(board, *names)  # the types are read once a process
    assert queries(names) == queries(names[:8]) <= 15


WAITING = 100_000


def test_the_place_among_100_000_and_who_ages_are_read_from_the_index(board: Board) -> None:
    crew(board)
    with board.db.write() as tx:
        moment = read_now(tx)
        shared = {key: value for key, value in new_task("").items() if key != "data"} | {
            "status": "pending", "phase": "work", "pool": "board", "home_pool": "board", "lane": 3, "rank": 1,
            "has_action": False, "unmet_needs": 0, "lease_token": 0, "cancel_requested": False, "retry_count": 0,
            "crash_count": 0, "suspect": False, "deadline_missed": False, "round": 1, "version": 1, "event_seq": 1,
            "lane_since": moment - timedelta(seconds=WAITING), "created_at": moment, "updated_at": moment,
        }  # fmt: skip
        rows = [
            shared | {"task_id": f"T-{n}", "ready_at": moment - timedelta(seconds=WAITING - n)} for n in range(WAITING)
        ]
        for begin in range(0, WAITING, 10_000):
            tx.execute(insert(tasks), rows[begin : begin + 10_000])
    with board.db.write() as tx:
        tx.exec_driver_sql("ANALYZE tasks")
    with board.db.read() as connection:
        found = connection.execute(select(tasks).where(tasks.c.task_id.in_(["T-700", "T-99999"]))).mappings().all()
    with plans(board.db, "ORDER BY tasks.rank") as placing, board.db.read() as connection:
        answers = board.waiting.of(connection, found, places=True)
    by_name = {row["task_id"]: answers[row["id"]] for row in found}
    assert (by_name["T-700"]["behind"], by_name["T-99999"]["behind"]) == (700, waiting.MOST)
    [plan] = placing
    assert "ix_tasks_ready" in plan, plan
    assert not re.search(r"Seq Scan|SCAN tasks$|(?<!Incremental )Sort  |TEMP B-TREE FOR ORDER BY", plan, re.M), plan
    with plans(board.db, "ready_at <=") as ageing_plans:
        assert ageing.age(board.db, board.ledger, WAITING - 1000.0) > 0
    # What was found is then locked by its ids; the finding must not read all that waits.
    finding = [plan for plan in ageing_plans if not re.search(r"tasks_pkey|INTEGER PRIMARY KEY", plan)]
    assert finding
    for plan in finding:
        if "ix_tasks_held" not in plan:
            assert "ix_tasks_ready" in plan, plan
            assert not re.search(
                r"Seq Scan|SCAN tasks$|(?<!Incremental )Sort  |TEMP B-TREE FOR ORDER BY", plan, re.M
            ), plan
