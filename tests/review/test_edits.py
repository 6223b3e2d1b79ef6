"""An approval with changes of the output."""

from typing import Any

import pytest

from board.ports import Job, Outcome, Success
from board.review.decide import DecisionRefused
from tests.rig.working import OpenWorking, Probe, WorkingBoard

SCHEMA = {"type": "object", "properties": {"reply": {"type": "string", "minLength": 3}}}


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    """A type whose reply may be changed; its action notes what it was given."""

    async def act(job: Job) -> Outcome:
        return Success(result=job.inputs)

    opened = working(Probe(act, name="post"))
    opened.type(
        "letter",
        "echo",
        handler={"output_schema": SCHEMA},
        review={"when": "always", "editable": ["reply"], "grace": "1m"},
        action={"use": "post", "inputs": {"text": "{{ result.reply }}"}},
    )
    opened.submit("T-1", "letter", payload={"reply": "Dear Li", "label": "a"})
    opened.wait("T-1", "needs_review")
    return opened


def pinned(board: WorkingBoard) -> dict[str, Any]:
    row = board.reviews()[-1]
    return {"version": row["version"], "content_hash": row["content_hash"]}


def test_the_changed_output_is_kept_and_undo_brings_back_the_old_one(board: WorkingBoard) -> None:
    before = board.data()["result"]
    board.decide("T-1", "approve", edits={"reply": "Dear Ms Li"}, **pinned(board))
    assert board.data()["result"] == before | {"reply": "Dear Ms Li"}
    event = next(row for row in board.events() if row["kind"] == "approved")
    assert event["data"]["edits"] == {"reply": {"from": "Dear Li", "to": "Dear Ms Li"}}
    board.undo("T-1")
    assert board.data()["result"] == before
    assert board.task()["status"] == "needs_review"
    board.decide("T-1", "approve", **pinned(board))
    assert board.data()["result"] == before


@pytest.mark.parametrize(
    ("edits", "code", "field"),
    [
        ({"label": "b"}, "not_editable", "edits.label"),
        ({"reply": "Dear Ms Li", "new": 1}, "not_editable", "edits.new"),
        ({"reply": "x"}, "edit_does_not_fit", ".reply"),
        ({"reply": 5}, "edit_does_not_fit", ".reply"),
    ],
)
def test_what_may_not_be_changed_or_does_not_fit_is_refused(
    board: WorkingBoard, edits: dict[str, Any], code: str, field: str
) -> None:
    before = board.data()["result"]
    with pytest.raises(DecisionRefused) as refused:
        board.decide("T-1", "approve", edits=edits, **pinned(board))
    assert (refused.value.code, refused.value.details) == (code, [{"field": field}])
    assert board.data()["result"] == before
    assert board.reviews()[-1]["status"] == "open"


def test_only_an_approval_takes_changes(board: WorkingBoard) -> None:
    with pytest.raises(DecisionRefused) as refused:
        board.decide("T-1", "reject", edits={"reply": "Dear Ms Li"}, **pinned(board))
    assert refused.value.code == "not_editable"


def test_the_same_again_is_a_repeat_and_another_change_is_not(board: WorkingBoard) -> None:
    """B069: a double click sends the same; a second tab may hold another text."""
    given = pinned(board)
    assert board.decide("T-1", "approve", edits={"reply": "Dear Ms Li"}, **given) is False
    assert board.decide("T-1", "approve", edits={"reply": "Dear Ms Li"}, **given) is True
    for other in ({"reply": "Dear Mr Li"}, None):
        with pytest.raises(DecisionRefused) as refused:
            board.decide("T-1", "approve", edits=other, **given)
        assert refused.value.code == "already_decided"
    assert board.kinds().count("approved") == 1
