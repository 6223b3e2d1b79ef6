"""Tasks that have ended, and what the archive holds of them."""

import gzip
import json
from typing import Any

from sqlalchemy import insert, select

from board.effects.models import operations
from board.effects.operations import Delivered, log_deliveries
from board.tasks.acknowledge import acknowledge
from board.tasks.ledger import Lease
from board.tasks.models import tasks
from board.tasks.states import Move
from board.upkeep.archive import Archive
from tests.heart import OPERATOR, WORKER, claim_lane
from tests.rig.working import WorkingBoard

DAY = 86_400.0
ENDS = {"done": Move.SUCCEED, "failed": Move.FAIL, "needs_review": Move.ASK}


def archive(board: WorkingBoard) -> Archive:
    return Archive(board.board.db, board.board.catalogue, board.board.task_documents, board.board.archive.shelf, 0)


def end(board: WorkingBoard, task_id: str, status: str = "done", **body: Any) -> int:
    """A task that ended so; its internal id."""
    board.submit(task_id, **body)
    if status == "cancelled":
        board.cancel(task_id)
    elif status in ENDS:
        with board.board.db.write() as tx:
            (row,) = claim_lane(tx, board.board.ledger, limit=1)
            assert row["task_id"] == task_id
            details = {"reason": "policy"} if status == "needs_review" else None
            lease = Lease(row["id"], row["lease_token"])
            assert board.board.ledger.settle(tx, lease, ENDS[status], WORKER, details=details)
    assert board.task(task_id)["status"] == status
    return int(board.task(task_id)["id"])


def records(board: WorkingBoard) -> list[dict[str, Any]]:
    """All lines of the archive, as `zcat archive/*.jsonl.gz` shows them."""
    files = sorted(board.board.archive.shelf.folder.glob("*.jsonl.gz"))
    return [json.loads(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]


def archived_ids(board: WorkingBoard) -> list[str]:
    return sorted(record["task"]["task_id"] for record in records(board))


def on_board(board: WorkingBoard) -> set[str]:
    with board.board.db.read() as connection:
        return set(connection.execute(select(tasks.c.task_id)).scalars())


def acknowledged(board: WorkingBoard, task_id: str) -> None:
    with board.board.db.write() as tx:
        acknowledge(tx, board.board.ledger, board.task(task_id)["id"], OPERATOR, "Seen.")


def operation(board: WorkingBoard, task: int, status: str, **more: Any) -> int:
    row = {"key": f"pay:{task}", "task": task, "task_id": "T-1", "kind": "webhook.action", "target": "the bank"}
    row |= {"request_hash": "h", "body": "{}", "url": "https://bank.example.org", "status": status, "lease_token": 1}
    row |= {"tries": 1, "created_at": board.task()["created_at"]} | more
    with board.board.db.write() as tx:
        made = int(tx.execute(insert(operations).values(**row).returning(operations.c.id)).scalar_one())
        log_deliveries(tx, [Delivered(made, 5, 200, status[:12], "ok")])
    return made
