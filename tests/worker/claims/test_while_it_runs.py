"""Heartbeats, progress, silence and cancelling while an outside worker holds a task; on both databases."""

import pytest

from board.db.clock import read_now
from board.worker.claims import Claimed, ClaimLost, NoSuchClaim
from tests.rig.working import WorkingBoard
from tests.worker.claims.outside import CALLS, N8N, OTHER, complete, lose_lease, one


def test_a_heartbeat_begins_the_lease_anew_as_long_as_before_or_as_asked(board: WorkingBoard) -> None:
    board.submit()
    claimed = one(board, lease=100)
    for lease, lasts, later in [(None, 100, 50), (300, 300, 100), (None, 300, 150)]:
        board.at(later)
        standing = board.board.claims.heartbeat(claimed, lease)
        assert standing.lease_until == board.task()["lease_until"]
        assert standing.lease_until > board.task()["updated_at"]
        with board.board.db.read() as connection:
            left = (standing.lease_until - read_now(connection)).total_seconds()
        assert lasts - 5 < left <= lasts
        assert (standing.claim_id, standing.lease_token, standing.cancel_requested) == (claimed.claim_id, 1, False)


def test_progress_is_kept_with_the_attempt_and_renews_nothing(board: WorkingBoard) -> None:
    board.submit()
    claimed = one(board)
    until = board.task()["lease_until"]
    board.at(10)
    assert board.board.claims.progress(claimed, {"percent": 40.0, "message": "第 1 页"}).lease_until == until
    board.board.claims.progress(claimed, {"text": "Dear"})
    board.board.claims.progress(claimed, {"text": " Li"})
    said = board.attempts()[0]["progress"]
    assert said.pop("at").endswith("Z")
    assert said == {"percent": 40.0, "message": "第 1 页", "text": " Li", "offset": 4}
    assert board.task()["lease_until"] == until


def test_silence_counts_as_a_crash_and_after_max_crashes_the_task_fails(board: WorkingBoard) -> None:
    board.type(use="outside", max_crashes=2)
    board.submit()
    one(board)
    lose_lease(board)
    task = board.task()
    assert (task["status"], task["crash_count"], task["retry_count"]) == ("retrying", 1, 0)
    one(board)
    lose_lease(board)
    task = board.task()
    assert (task["status"], task["crash_count"]) == ("failed", 2)
    assert task["last_error"].startswith("worker died 2 times")
    assert [it["outcome"] for it in board.attempts()] == ["lease_lost"] * 2
    assert "key:n8n/flow-1" in board.events()[2]["note"]


ENDS = ("complete", "fail", "release")


@pytest.mark.parametrize("call", CALLS)
def test_after_the_lease_ran_out_nothing_of_the_claim_counts(board: WorkingBoard, call: str) -> None:
    board.submit()
    claimed = one(board)
    lose_lease(board)
    with pytest.raises(ClaimLost, match="the task is retrying") as lost:
        CALLS[call](board, claimed)
    assert lost.value.reason == "lease_expired"
    newer = one(board, worker="flow-2")
    with pytest.raises(ClaimLost, match="another worker has taken the task"):
        CALLS[call](board, claimed)
    task = board.task()
    assert (task["status"], task["lease_owner"], task["lease_token"]) == ("running", "key:n8n/flow-2", 2)
    assert board.kinds().count("stale_result") == (2 if call in ENDS else 0)
    complete(board, newer, "of the second")
    assert board.data()["result"] == "of the second"


def test_a_late_result_that_nobody_has_missed_yet_counts(board: WorkingBoard) -> None:
    board.submit()
    claimed = one(board, lease=1)
    board.at(100)
    complete(board, claimed)
    assert board.task()["status"] == "done"


@pytest.mark.parametrize("call", CALLS)
def test_for_another_key_the_claim_does_not_exist(board: WorkingBoard, call: str) -> None:
    board.submit()
    claimed = one(board)
    for foreign in (Claimed(OTHER, claimed.claim_id), Claimed(N8N, "999"), Claimed(N8N, "x"), Claimed(N8N, "9" * 30)):
        with pytest.raises(NoSuchClaim):
            CALLS[call](board, foreign)
    assert board.kinds() == ["created", "started"]


@pytest.mark.parametrize("call", CALLS)
def test_a_lease_token_that_is_sent_along_must_be_the_claims_own(board: WorkingBoard, call: str) -> None:
    board.submit()
    claimed = one(board)
    with pytest.raises(ClaimLost) as lost:
        CALLS[call](board, Claimed(N8N, claimed.claim_id, token=2))
    assert lost.value.reason == "other_token"
    assert board.task()["status"] == "running"
    CALLS[call](board, Claimed(N8N, claimed.claim_id, token=1))


def test_who_works_is_told_of_the_cancellation_and_a_result_is_refused(board: WorkingBoard) -> None:
    board.submit()
    claimed = one(board)
    board.cancel("T-1")
    assert board.board.claims.heartbeat(claimed, None).cancel_requested
    assert board.board.claims.progress(claimed, {"percent": 90}).cancel_requested
    assert board.task()["status"] == "running"
    for _ in range(2):
        with pytest.raises(ClaimLost) as lost:
            complete(board, claimed)
        assert lost.value.reason == "cancelled"
    assert board.task()["status"] == "cancelled"
    assert board.data()["result"] is None
    assert board.attempts()[0]["outcome"] == "cancelled"


@pytest.mark.parametrize("call", ["fail", "release"])
def test_who_stops_because_of_the_cancellation_is_told_that_it_is_cancelled(board: WorkingBoard, call: str) -> None:
    board.submit()
    claimed = one(board)
    board.cancel("T-1")
    for repeated in (False, True):
        settled = CALLS[call](board, claimed)
        assert (settled.task["status"], settled.repeated) == ("cancelled", repeated)
    assert board.kinds() == ["created", "started", "cancel_requested", "cancelled"]


def test_a_cancelled_task_of_a_silent_worker_is_cancelled_by_the_sweep(board: WorkingBoard) -> None:
    board.submit()
    claimed = one(board)
    board.cancel("T-1")
    lose_lease(board)
    assert board.task()["status"] == "cancelled"
    with pytest.raises(ClaimLost):
        complete(board, claimed)
