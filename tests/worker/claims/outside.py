"""What an outside worker does, as short calls."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import update

from board.access.rights import key_actor
from board.db.clock import now
from board.ports import ErrorClass
from board.tasks.models import tasks
from board.upkeep import sweep
from board.worker.claims import Claimed, Settled
from board.worker.handing_out import HandedOut, WorkWanted
from tests.rig.working import WorkingBoard

N8N = key_actor("n8n", ["work"])
OTHER = key_actor("other", ["work"])


def take(board: WorkingBoard, limit: int = 1, **wanted: Any) -> list[HandedOut]:
    return board.board.claims.take(N8N, WorkWanted(wanted.pop("worker", "flow-1"), limit, **wanted))


def one(board: WorkingBoard, **wanted: Any) -> Claimed:
    """The one task that waits, claimed."""
    [handed_out] = take(board, **wanted)
    return Claimed(N8N, handed_out.claim_id)


def complete(
    board: WorkingBoard, claimed: Claimed, result: Any = "good", judgement: Any = None, review: Any = "auto"
) -> Settled:
    return board.board.claims.complete(claimed, result, judgement, review)


def fail(board: WorkingBoard, claimed: Claimed, error_class: str = "transient", **more: Any) -> Settled:
    given: dict[str, Any] = {"code": None, "retry_after": None} | more
    return board.board.claims.fail(claimed, "It broke.", ErrorClass(error_class), **given)


def lose_lease(board: WorkingBoard, task_id: str = "T-1") -> None:
    with board.board.db.write() as tx:
        tx.execute(update(tasks).where(tasks.c.task_id == task_id).values(lease_until=now(-1)))
    assert sweep.rescue_leases(board.board.db, board.board.ledger, board.board.catalogue) == 1


CALLS: dict[str, Callable[[WorkingBoard, Claimed], Any]] = {
    "heartbeat": lambda board, claimed: board.board.claims.heartbeat(claimed, None),
    "progress": lambda board, claimed: board.board.claims.progress(claimed, {"percent": 1}),
    "complete": complete,
    "fail": fail,
    "release": lambda board, claimed: board.board.claims.release(claimed),
}
