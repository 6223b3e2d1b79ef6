"""Callbacks that come in: one right an attempt, early ones kept, repeats answered alike, late ones refused."""

import hashlib
import threading
from typing import Any

import pytest
from sqlalchemy import select, update

from board.effects.incoming import Late, NoSuchRight, Recorded
from board.effects.models import callback_rights
from board.ports import Job, Outcome, UnknownOutcome
from board.signals.signal import Channel
from board.tasks.models import tasks
from board.tasks.requeue import requeue
from board.upkeep import sweep
from tests.rig.calling import URL, Caller
from tests.rig.working import CALLER, Gate, OpenWorking, Probe, WorkingBoard


def called(board: WorkingBoard, token: str, status: str = "succeeded", **body: Any) -> Recorded:
    return board.board.incoming.take(token, {"status": status, **body})


def rights(board: WorkingBoard) -> list[Any]:
    with board.board.db.read() as connection:
        return list(connection.execute(select(callback_rights).order_by(callback_rights.c.id)).mappings())


def opened(working: OpenWorking, caller: Caller, **parts: Any) -> WorkingBoard:
    settings = {name: parts.pop(name) for name in ("concurrency", "lease") if name in parts}
    board = working(caller, **settings)
    board.type("flow", use="caller", **parts)
    return board


def test_the_result_comes_by_the_address(working: OpenWorking) -> None:
    caller = Caller()
    board = opened(working, caller)
    board.submit(type="flow")
    token = caller.token()
    assert board.task()["status"] == "running"
    taken = called(board, token, result={"label": "ok", "名": "x"}, external_reference="exec-7", message="Fine.")
    assert (taken.task_id, taken.attempt, taken.repeated) == ("T-1", 1, False)
    board.wait("T-1", "done")
    assert board.data()["result"] == {"label": "ok", "名": "x"}
    [operation] = board.operations()
    assert (operation["status"], operation["external_reference"]) == ("confirmed", "exec-7")
    assert board.kinds() == ["created", "started", "called_back", "done"]
    assert board.events()[2]["note"] == "Fine."


def test_the_token_is_kept_nowhere(working: OpenWorking) -> None:
    caller = Caller()
    board = opened(working, caller, handler={"inputs": {"to": "{{ callback.url }}", "text": "to {{ callback.url }}"}})
    board.submit(type="flow")
    token = caller.token()
    assert len(token) >= 43, "256 bits"
    assert caller.seen[0].inputs == {"to": URL + token, "text": f"to {URL}{token}"}
    assert token not in repr(caller.seen[0])
    called(board, token, result=1)
    board.wait("T-1", "done")
    assert token not in board.dump()
    [right] = rights(board)
    assert right["token_hash"] == hashlib.sha256(token.encode()).hexdigest()
    assert token not in str(dict(right))


def test_early_word_is_kept(working: OpenWorking) -> None:
    """It comes before the attempt has begun to wait."""
    caller = Caller(begin=Gate())
    board = opened(working, caller)
    board.submit(type="flow")
    called(board, caller.token(), result="early")
    assert board.task()["status"] == "running"
    assert caller.begin is not None
    caller.begin.open()
    board.wait("T-1", "done")
    assert board.data()["result"] == "early"


def test_a_repetition_is_answered_with_what_was_recorded(working: OpenWorking) -> None:
    caller = Caller(begin=Gate())
    board = opened(working, caller)
    board.submit(type="flow")
    token = caller.token()
    first = called(board, token, result={"a": 1, "b": 2})
    again = called(board, token, result={"b": 2, "a": 1})
    assert (again.answer, again.at, again.repeated) == (first.answer, first.at, True)
    assert caller.begin is not None
    caller.begin.open()
    board.wait("T-1", "done")
    assert called(board, token, result={"a": 1, "b": 2}).repeated, "also when all is over"
    assert board.data()["result"] == {"a": 1, "b": 2}
    assert board.kinds() == ["created", "started", "called_back", "done"]


def test_a_second_word_that_says_something_else_is_refused_and_noted(working: OpenWorking) -> None:
    caller = Caller(begin=Gate())
    board = opened(working, caller)
    board.submit(type="flow")
    token = caller.token()
    called(board, token, result=1)
    for body in ({"status": "succeeded", "result": 2}, {"status": "failed", "message": "no"}):
        with pytest.raises(Late) as refused:
            board.board.incoming.take(token, body)
        assert refused.value.code == "callback_differs"
    assert caller.begin is not None
    caller.begin.open()
    board.wait("T-1", "done")
    assert board.data()["result"] == 1
    assert board.kinds() == ["created", "started", "called_back", "callback_late", "done"]
    assert board.events()[3]["data"] == {"status": "succeeded", "attempt": 1, "result": 2}


@pytest.mark.parametrize("same", [True, False], ids=["the same", "different"])
def test_many_at_once_are_one(working: OpenWorking, same: bool) -> None:
    caller = Caller(begin=Gate())
    board = opened(working, caller)
    board.submit(type="flow")
    token = caller.token()
    came: list[Recorded] = []
    refused: list[str] = []
    barrier = threading.Barrier(8)

    def call(number: int) -> None:
        barrier.wait()
        try:
            came.append(called(board, token, result=1 if same else number))
        except Late as late:
            refused.append(late.code)

    threads = [threading.Thread(target=call, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [first] = [it for it in came if not it.repeated]
    assert (len(came), refused) == ((8, []) if same else (1, ["callback_differs"] * 7))
    assert caller.begin is not None
    caller.begin.open()
    board.wait("T-1", "done")
    assert board.data()["result"] == first.answer["result"]
    assert board.kinds().count("called_back") == 1
    assert board.kinds().count("callback_late") == (0 if same else 1)


def test_late_word_is_refused_and_noted_once(working: OpenWorking) -> None:
    """B025: the task was cancelled; nothing of it counts any more."""
    caller = Caller()
    board = opened(working, caller)
    board.submit(type="flow")
    token = caller.token()
    board.cancel("T-1")
    board.wait("T-1", "cancelled")
    for _ in range(3):
        with pytest.raises(Late) as refused:
            called(board, token, result={"text": "x" * 9000}, message="Ready.")
        assert refused.value.status == "cancelled"
    late = [event for event in board.events() if event["kind"] == "callback_late"]
    assert len(late) == 1
    assert (late[0]["note"], late[0]["data"]["status"], late[0]["data"]["attempt"]) == ("Ready.", "succeeded", 1)
    assert len(late[0]["data"]["result"]) < 5000
    assert board.task()["status"] == "cancelled"
    assert board.data()["result"] is None


def test_a_task_that_is_put_back_has_rights_of_its_own(working: OpenWorking) -> None:
    caller = Caller(side_effects=False)
    board = opened(working, caller)
    board.submit(type="flow")
    first = caller.token()
    board.cancel("T-1")
    board.wait("T-1", "cancelled")
    heart = board.board
    with heart.db.write() as tx:
        requeue(tx, heart.ledger, heart.catalogue, board.task()["id"], CALLER)
    board.until(lambda: len(rights(board)) >= 2)
    with pytest.raises(Late):
        called(board, first, result="of the first")


@pytest.mark.parametrize("token", ["", "x", "A" * 43, "no/such", "%00"])
def test_an_unknown_token(working_sqlite: OpenWorking, token: str) -> None:
    with pytest.raises(NoSuchRight):
        called(working_sqlite(start=False), token)


def test_a_failure_by_callback_is_tried_again_with_a_right_of_its_own(working: OpenWorking) -> None:
    caller = Caller()
    board = opened(working, caller)
    board.submit(type="flow")
    first = caller.token()
    called(board, first, "failed", **{"message": "Quota.", "class": "quota", "code": "E1", "retry_after": 0.01})
    second = caller.token(2)
    assert second != first
    attempt = board.attempts()[0]
    assert (attempt["error_class"], attempt["error"]) == ("quota", "Quota.")
    called(board, second, result="ok")
    board.wait("T-1", "done")
    assert board.data()["result"] == "ok"
    assert board.task()["retry_count"] == 1
    with pytest.raises(Late):
        called(board, first, result="of the first")
    assert board.data()["result"] == "ok"


def test_a_permanent_failure_by_callback(working: OpenWorking) -> None:
    caller = Caller()
    board = opened(working, caller)
    board.submit(type="flow")
    called(board, caller.token(), "failed", **{"message": "No such customer.", "class": "permanent"})
    task = board.wait("T-1", "failed")
    assert (task["last_error"], task["error_class"]) == ("No such customer.", "permanent")
    assert board.operations()[0]["status"] == "rejected"


def test_progress_is_shown_and_spends_nothing(working: OpenWorking) -> None:
    caller = Caller()
    board = opened(working, caller)
    board.submit(type="flow")
    token = caller.token()
    called(board, token, "progress", percent=10, message="Reading.")
    called(board, token, "progress", percent=40)
    progress = board.attempts()[0]["progress"]
    assert (progress["percent"], progress["message"]) == (40, "Reading.")
    assert progress["at"].endswith("Z")
    called(board, token, result="ok")
    board.wait("T-1", "done")
    with pytest.raises(Late):
        called(board, token, "progress", percent=90)
    assert board.kinds() == ["created", "started", "called_back", "done", "callback_late"]


def test_who_waits_needs_no_slot(working: OpenWorking) -> None:
    """Two slots; five flows run elsewhere and a sixth task is done meanwhile."""
    caller = Caller()
    board = opened(working, caller, concurrency=2)
    board.type("echo", use="echo")
    for number in range(5):
        board.submit(f"F-{number}", type="flow")
    caller.token(5)
    board.submit("T-1", type="echo")
    board.wait("T-1", "done")
    assert [board.task(f"F-{number}")["status"] for number in range(5)] == ["running"] * 5
    for url in caller.urls:
        called(board, url.removeprefix(URL), result="ok")
    for number in range(5):
        board.wait(f"F-{number}", "done")


def test_its_lease_is_kept_while_it_waits(working: OpenWorking) -> None:
    caller = Caller()
    board = opened(working, caller, lease="1s")
    board.submit(type="flow")
    token = caller.token()
    until = board.task()["lease_until"]
    board.until(lambda: board.task()["lease_until"] > until)
    board.until(lambda: (board.task()["lease_until"] - board.events()[1]["at"]).total_seconds() > 2.5)
    called(board, token, result="ok")
    board.wait("T-1", "done")
    assert len(board.attempts()) == 1


def test_word_survives_a_stop_and_is_found_by_the_next_worker(working: OpenWorking) -> None:
    caller = Caller()
    first = opened(working, caller)
    first.submit(type="flow")
    token = caller.token()
    first.stop()
    assert first.task()["status"] == "pending"
    called(first, token, result="while nobody worked")
    second = working(caller)
    second.wait("T-1", "done")
    assert second.data()["result"] == "while nobody worked"
    assert len(caller.urls) == 1, "nothing was sent again"


def test_word_that_comes_between_two_looks_ends_the_waiting_at_once(working: OpenWorking) -> None:
    """The attempt's time is over and the flow goes on: it is asked about later, and a callback comes before."""
    caller = Caller(within=0.05)
    board = opened(working, caller, retry={"base": "1h", "cap": "1h"}, handler={"timeout": "1h"})
    board.submit(type="flow")
    token = caller.token()
    board.wait("T-1", "retrying")
    assert board.task()["reconciling"]
    called(board, token, result="at last")
    board.wait("T-1", "done")
    assert board.data()["result"] == "at last"
    assert board.task()["retry_count"] == 0
    assert len(caller.urls) == 1


def test_without_any_word_a_person_is_asked_and_late_word_is_shown_to_him(working: OpenWorking) -> None:
    caller = Caller(within=0.02)
    board = opened(working, caller, handler={"timeout": "50ms"})
    board.submit(type="flow")
    token = caller.token()
    board.wait("T-1", "needs_review")
    assert board.reviews()[-1]["reason"] == "unknown_outcome"
    with pytest.raises(Late):
        called(board, token, result={"id": 7})
    event = board.events()[-1]
    assert (event["kind"], event["data"]["result"]) == ("callback_late", {"id": 7})
    board.decide("T-1", "happened", reason="The callback says so.")
    board.wait("T-1", "done")


@pytest.mark.parametrize("open_", [True, False], ids=["may go on", "failed"])
def test_word_that_comes_while_the_attempt_gives_up_counts(working: OpenWorking, open_: bool) -> None:
    """It was confirmed to whoever called; so it must not be lost between the last look and the end of the attempt."""
    caller = Caller(within=0.02, then=Gate(), stays_open=open_)
    board = opened(working, caller, handler={"timeout": "50ms"})
    board.submit(type="flow")
    token = caller.token()
    assert caller.then is not None
    caller.gave_up.wait()
    called(board, token, result="in the last moment")
    caller.then.open()
    board.wait("T-1", "done")
    assert board.data()["result"] == "in the last moment"
    assert board.operations()[0]["status"] == "confirmed"


def test_word_is_found_though_its_worker_died_once_too_often(working: OpenWorking) -> None:
    caller = Caller()
    board = opened(working, caller, max_crashes=1)
    board.submit(type="flow")
    token = caller.token()
    board.stop()
    called(board, token, result="kept")
    with board.board.db.write() as tx:  # as if it had been killed
        lost = {"status": "running", "lease_owner": "w", "lease_until": tasks.c.created_at}
        tx.execute(update(tasks).values(**lost))
    assert sweep.rescue_leases(board.board.db, board.board.ledger, board.board.catalogue) == 1
    second = working(caller)
    second.wait("T-1", "done")
    assert second.data()["result"] == "kept"


def test_the_worker_is_told_and_need_not_look(working: OpenWorking) -> None:
    """By another process on PostgreSQL, by another thread on SQLite; its polling is switched off here."""
    caller = Caller()
    board = opened(working, caller)
    other = board if board.board.db.is_sqlite else working(caller, start=False)
    if other is not board:
        for it in (board, other):
            it.board.signals.start([Channel.WORKERS])
            assert it.board.signals.wait_until_listening(15)
    board.submit(type="flow")
    token = caller.token()
    consumer = board.board.consumer
    assert consumer is not None
    board.until(lambda: not consumer.holding.busy)
    consumer._scheduler.remove_job("poll")
    called(other, token, result="told")
    board.wait("T-1", "done")


def test_the_address_of_an_archived_task_tells_nothing(working: OpenWorking) -> None:
    caller = Caller()
    board = opened(working, caller, retention="1h")
    board.submit(type="flow")
    token = caller.token()
    called(board, token, result=1)
    board.wait("T-1", "done")
    board.stop()
    board.at(2 * 3600)
    assert board.board.archive.run().archived.total() == 1
    with pytest.raises(NoSuchRight):
        called(board, token, result=1)
    assert rights(board) == []


def test_only_the_round_that_asked_is_answered(working: OpenWorking) -> None:
    caller = Caller(side_effects=False)
    board = opened(working, caller, review={"when": "always"})
    board.submit(type="flow")
    first = caller.token()
    called(board, first, result="draft")
    board.wait("T-1", "needs_review")
    board.decide("T-1", "revise", instruction="Shorter.")
    second = caller.token(2)
    with pytest.raises(Late):
        called(board, first, result="another draft")
    called(board, second, result="shorter")
    board.until(lambda: board.data()["result"] == "shorter")
    assert board.task()["round"] == 2


def test_work_that_asks_a_person_meanwhile_may_still_call_back(working: OpenWorking) -> None:
    """It waits outside for a person to fill in a form, and goes on by itself after that, or without it."""
    caller = Caller(asks=True)
    board = opened(working, caller)
    board.submit(type="flow")
    token = caller.token()
    board.wait("T-1", "needs_review")
    assert board.reviews()[-1]["reason"] == "input_needed"
    called(board, token, result="asked somebody else")
    board.decide("T-1", "answer", action="yes", inputs={})
    board.wait("T-1", "done")
    assert board.data()["result"] == "asked somebody else"
    assert len(caller.urls) == 1


def test_a_handler_that_is_not_called_back_has_no_address(working_sqlite: OpenWorking) -> None:
    async def run(job: Job) -> Outcome:
        assert job.answer_url is None
        assert job.wait == "stream"
        return UnknownOutcome("no")

    board = working_sqlite(Probe(run))
    board.type("trial")
    board.submit()
    board.wait("T-1", "needs_review", "retrying", "failed")
    assert rights(board) == []
