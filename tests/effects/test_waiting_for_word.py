"""Who waits for a callback needs no slot and keeps its lease; word that comes between two looks, late or to another
worker."""

import pytest
from sqlalchemy import update

from board.effects.incoming import Late
from board.signals.signal import Channel
from board.tasks.models import tasks
from board.upkeep import sweep
from tests.effects.calling_back import called, opened
from tests.rig.calling import URL, Caller
from tests.rig.working import Gate, OpenWorking


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
