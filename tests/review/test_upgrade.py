"""Reviews that were there before the order of the inbox stood in its rows."""

from board.db import migrate
from board.ports import Job, Outcome, Success
from tests.rig.working import OpenWorking, Probe


async def propose(job: Job) -> Outcome:
    return Success({"verdict": "approve", "reply": "Hello."})


def test_what_an_earlier_board_has_left_is_filled_in(working: OpenWorking, database_url: str) -> None:
    board = working(Probe(propose))
    review = {"when": "always", "editable": ["reply"], "risk": "high", "due": "4h"}
    board.type("letter", handler={"judgement": {"verdict": "verdict"}}, review=review)
    for task_id in ("T-1", "T-2"):
        board.submit(task_id, "letter", priority="P3")
        board.wait(task_id, "needs_review")
    board.decide("T-2", "approve", edits={"reply": "Dear Li,"})
    board.stop()
    before = [dict(board.reviews(task_id)[-1]) for task_id in ("T-1", "T-2")]
    assert (before[0]["proposed"], before[0]["lane"], before[1]["edited"]) == ("approve", 3, True)
    board.board.db.close()
    migrate.downgrade(database_url, "0024")
    migrate.upgrade(database_url)
    after = [dict(board.reviews(task_id)[-1]) for task_id in ("T-1", "T-2")]
    for name in ("lane", "proposed", "edited", "due_order", "risk_order", "content_hash"):
        assert after[0][name] == before[0][name], name
    assert after[1]["edited"]
    assert after[0]["due_order"] == after[0]["due_at"]
    assert after[0]["risk_order"] == 0
