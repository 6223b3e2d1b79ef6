"""Work that waits outside for a person: the form in the inbox, the answer, and the same call followed on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from board.ports import FormAnswer, Job, NeedsInput, Outcome, SentOperation, Success
from board.review.decide import DecisionRefused
from board.review.forms import BadAnswer, check, look_again
from tests.rig.working import OpenWorking, Probe, WorkingBoard

FORM: dict[str, Any] = {
    "id": "f-1",
    "title": "May this go out?",
    "content": "**Look** at it.",
    "fields": [
        {"name": "remark", "kind": "text", "options": [], "default": None},
        {"name": "size", "kind": "choice", "options": ["S", "M"], "default": "M"},
    ],
    "actions": [{"id": "yes", "title": "Send"}, {"id": "no", "title": "Do not"}],
    "expires_at": None,
}
GOOD = {"action": "yes", "inputs": {"remark": "Fine.", "size": "M"}}


async def ask(job: Job) -> Outcome:
    await job.send(kind="test.call", target="a workflow", request=b"{}")
    await job.reference("run-1")
    return NeedsInput("The workflow waits for a person: May this go out?", FORM, "run-1")


async def follow(job: Job, operation: SentOperation) -> Outcome:
    if operation.answer is None:
        return NeedsInput("The workflow still waits.", FORM, operation.reference)
    return Success({"said": operation.answer.inputs["remark"]}, reference=operation.reference)


def waiting(working: OpenWorking) -> tuple[WorkingBoard, Probe]:
    probe = Probe(ask, follow)
    it = working(probe)
    it.type("trial")
    it.submit()
    it.wait("T-1", "needs_review")
    return it, probe


def test_a_form_is_shown_answered_and_followed_on_in_the_same_call(working: OpenWorking) -> None:
    it, probe = waiting(working)
    [review] = it.reviews()
    assert (review["reason"], review["message"]) == (
        "input_needed",
        "The workflow waits for a person: May this go out?",
    )
    assert review["data"]["form"] == FORM
    [operation] = it.operations()
    assert (operation["status"], operation["external_reference"]) == ("sent", "run-1")
    it.decide("T-1", "answer", **GOOD)
    it.wait("T-1", "done")
    assert it.data()["result"] == {"said": "Fine."}
    [asked] = probe.asked
    assert asked.answer == FormAnswer("f-1", "yes", {"remark": "Fine.", "size": "M"})
    assert asked.reference == "run-1"
    assert len(probe.seen) == 1  # nothing was started a second time
    assert it.operations()[0]["status"] == "confirmed"
    assert it.task()["round"] == 1
    assert "form_answered" in it.kinds()


def test_the_same_answer_again_is_only_told_again(working_sqlite: OpenWorking) -> None:
    it, _ = waiting(working_sqlite)
    assert not it.decide("T-1", "answer", **GOOD)
    it.wait("T-1", "done")
    assert it.decide("T-1", "answer", **GOOD)


@pytest.mark.parametrize(
    ("action", "inputs", "field"),
    [
        ("maybe", {"remark": "x", "size": "M"}, "action"),
        (None, {"remark": "x", "size": "M"}, "action"),
        ("yes", {"size": "M"}, "inputs.remark"),
        ("yes", {"remark": "x", "size": "XL"}, "inputs.size"),
        ("yes", {"remark": 7, "size": "M"}, "inputs.remark"),
        ("yes", {"remark": "x", "size": "M", "more": "y"}, "inputs.more"),
        ("yes", {"remark": "x" * 100_001, "size": "M"}, "inputs.remark"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_by_name(action: str | None, inputs: dict[str, Any], field: str) -> None:
    with pytest.raises(BadAnswer) as refused:
        check(FORM, action, inputs)
    assert refused.value.field == field


def test_what_is_refused_moves_nothing_and_other_verdicts_are_not_offered(working_sqlite: OpenWorking) -> None:
    it, _ = waiting(working_sqlite)
    with pytest.raises(DecisionRefused, match="action must be one of yes, no"):
        it.decide("T-1", "answer", action="burn", inputs={})
    with pytest.raises(DecisionRefused, match="not offered"):
        it.decide("T-1", "approve")
    assert it.task()["status"] == "needs_review"
    it.decide("T-1", "reject", reason_class="other")
    assert it.task()["status"] == "cancelled"


def test_a_form_that_expired_is_looked_at_by_the_board_itself(working: OpenWorking) -> None:
    soon = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    looked: list[FormAnswer | None] = []

    async def ask_shortly(job: Job) -> Outcome:
        await job.send(kind="test.call", target="a workflow", request=b"{}")
        return NeedsInput("It waits.", FORM | {"expires_at": soon})

    async def went_on(job: Job, operation: SentOperation) -> Outcome:
        looked.append(operation.answer)
        return Success({"by": "the time-out branch"})

    it = working(Probe(ask_shortly, went_on))
    it.type("trial")
    it.submit()
    it.wait("T-1", "needs_review")
    with it.board.db.write() as tx:
        assert look_again(tx, it.board.ledger) == 0  # not before Dify itself has looked
    with it.board.db.write() as tx:
        tx.exec_driver_sql("UPDATE reviews SET due_at = opened_at")
    with it.board.db.write() as tx:
        look_again(tx, it.board.ledger)
    it.wait("T-1", "done")
    assert looked == [None]
    assert it.reviews()[0]["status"] == "closed"
