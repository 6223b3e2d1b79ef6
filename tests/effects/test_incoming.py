"""Callbacks that come in: one right an attempt, early ones kept, repeats answered alike, late ones refused."""

import hashlib
import threading

import pytest

from board.effects.incoming import Late, NoSuchRight, Recorded
from board.ports import Job, Outcome, UnknownOutcome
from board.tasks.requeue import requeue
from tests.effects.calling_back import called, opened, rights
from tests.rig.calling import URL, Caller
from tests.rig.working import CALLER, Gate, OpenWorking, Probe


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
