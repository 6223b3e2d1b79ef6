"""A person's word about the board's own calls, where no review asks for it."""

from __future__ import annotations

from typing import Any

import pytest

from board.access.rights import person_actor
from board.effects.steps import NoSuchOperation
from board.ports import Cause, ErrorClass, Failure, Job, Outcome
from board.review.decide import DecisionRefused, Verdict
from board.review.policy import NotEligible
from board.review.resolve import Resolved
from tests.effects.test_actions import publishing
from tests.effects.test_operation_keys import notes
from tests.rig.receiver import Receiver, Reply
from tests.rig.working import LI, OpenWorking, Probe, WorkingBoard


def resolve(board: WorkingBoard, verdict: str, operation: int | None = None, actor: Any = LI, **more: Any) -> Resolved:
    number = board.operations()[0]["id"] if operation is None else operation
    with board.board.db.write() as tx:
        answer = Verdict(verdict, reason="I have looked.", **more)
        return board.board.resolutions.resolve(tx, number, answer, actor, "api")


def test_a_call_whose_task_was_cancelled_meanwhile(working: OpenWorking, receiver: Receiver) -> None:
    receiver.reply(Reply(hang=True))
    board = working()
    publishing(board, receiver.url)
    board.submit(type="publish")
    receiver.wait_for(1)
    board.cancel("T-1")
    board.wait("T-1", "cancelled")
    assert resolve(board, "happened", reference="post-9").repeated is False
    assert resolve(board, "happened").repeated is True
    [operation] = board.operations()
    assert (operation["status"], operation["external_reference"]) == ("confirmed", "post-9")
    assert board.task()["status"] == "cancelled"
    event = board.events()[-1]
    assert (event["kind"], event["note"], event["actor_name"]) == ("operation_resolved", "I have looked.", "li")
    assert event["data"] == {"operation": str(operation["id"]), "outcome": "happened"}
    with pytest.raises(DecisionRefused) as refused:
        resolve(board, "drop")
    assert refused.value.code == "already_decided"


@pytest.mark.parametrize(
    ("verdict", "status", "calls"), [("happened", "done", 1), ("not_happened", "done", 2), ("drop", "cancelled", 1)]
)
def test_who_knows_better_need_not_wait_until_the_board_has_asked_to_the_end(
    working: OpenWorking, receiver: Receiver, verdict: str, status: str, calls: int
) -> None:
    receiver.reply(Reply(status=500))
    board = working()
    publishing(board, receiver.url, status_url=f"{receiver.url}/calls/{{{{ key }}}}", grace="1h", reconcile_for="1h")
    slow = {"base": "10m", "cap": "10m"}
    board.type("publish", use="echo", action={"use": "webhook", "connection": "hook"}, retry=slow)
    board.submit(type="publish")
    board.wait("T-1", "retrying")
    resolve(board, verdict)
    board.wait("T-1", status)
    assert [it.method for it in receiver.requests] == ["POST"] * calls
    assert [kind for kind, _ in notes(board, "webhook:hook:T-1")] == ["resolved"]


def test_the_result_of_work_is_asked_for_by_a_review_and_not_before(working: OpenWorking) -> None:
    async def lost(job: Job) -> Outcome:
        await job.send(kind="test.call", target="https://example.org", request=b"{}")
        return Failure(ErrorClass.TRANSIENT, Cause.NETWORK, "The line was cut.", open_operation=True)

    board = working(Probe(lost, side_effects=True))
    board.type(retry={"base": "10m", "cap": "10m"})
    board.submit()
    board.wait("T-1", "retrying")
    with pytest.raises(DecisionRefused) as refused:
        resolve(board, "happened")
    assert refused.value.code == "not_unknown"


def test_what_is_not_in_question_cannot_be_answered(working: OpenWorking, receiver: Receiver) -> None:
    receiver.default = Reply(hang=True)
    board = working()
    publishing(board, receiver.url)
    board.submit(type="publish")
    receiver.wait_for(1)
    with pytest.raises(DecisionRefused) as refused:  # its answer may come at any moment
        resolve(board, "happened")
    assert refused.value.code == "not_unknown"
    with pytest.raises(NoSuchOperation):
        resolve(board, "happened", operation=999)
    with pytest.raises(NotEligible):
        resolve(board, "happened", actor=person_actor("eve@example.org", "viewer"))


def test_a_callback_is_sent_until_it_is_confirmed_or_given_up(working: OpenWorking, receiver: Receiver) -> None:
    receiver.default = Reply(status=500)
    board = working()
    board.type("echo", use="echo")
    board.submit(type="echo", callback_url=receiver.url)
    board.wait("T-1", "done")
    receiver.wait_for(1)
    with pytest.raises(DecisionRefused) as refused:
        resolve(board, "drop")
    assert refused.value.code == "not_unknown"
