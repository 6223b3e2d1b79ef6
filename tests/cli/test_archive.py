"""`board archive`, `board acknowledge`, and what is said of an archived task."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from board.db.engine import Database
from board.tasks.ledger import Lease, Ledger
from board.tasks.states import Move
from tests.cli.conftest import Run
from tests.heart import WORKER, claim_lane


@pytest.fixture
def failed(board: Run, database_url: str, tmp_path: Path) -> None:
    """T-0 was cancelled, T-1 and T-2 have failed, T-3 waits."""
    (tmp_path / "types.yaml").write_text("types: [{name: trial, handler: {use: echo}}]")
    assert board("types", "apply", "types.yaml").code == 0
    bodies = [{"type": "trial", "task_id": f"T-{number}"} for number in range(4)]
    (tmp_path / "tasks.json").write_text(json.dumps(bodies))
    assert board("submit", "tasks.json").code == 0
    assert board("cancel", "T-0").code == 0
    db = Database(database_url)
    with db.write() as tx:
        for row in claim_lane(tx, Ledger(), limit=2):
            assert Ledger().settle(tx, Lease(row["id"], row["lease_token"]), Move.FAIL, WORKER)
    db.close()


def test_a_dry_run_counts_and_a_run_archives(
    board: Run, failed: None, at: Callable[[float], None], tmp_path: Path
) -> None:
    folder = str(tmp_path / "data" / "archive")
    nothing = {"archived": 0, "data": [], "kept": {}, "folder": folder}
    assert board("archive", "--json").json == nothing | {"dry_run": False}
    acknowledged = board("acknowledge", "T-1", " T-1 ", "--reason", "Known.")
    assert (acknowledged.code, acknowledged.out) == (0, "T-1  acknowledged\nT-1  acknowledged\n")
    at(31 * 86_400)
    rows = [
        {"type": "trial", "status": "cancelled", "count": 1},
        {"type": "trial", "status": "failed", "count": 1},
    ]
    found = {"archived": 2, "data": rows, "kept": {"not_acknowledged": 1}, "folder": folder}
    assert board("archive", "--dry-run", "--json").json == found | {"dry_run": True}
    dry = board("archive", "--dry-run")
    assert dry.out.splitlines()[0].split() == ["TYPE", "STATUS", "TASKS"]
    assert dry.out.splitlines()[-1] == f"2 tasks would go to {folder}."
    assert dry.err == (
        "1 kept although the time is over: failed, and nobody has acknowledged it (`board acknowledge ID`).\n"
    )
    assert not list(Path(folder).glob("*.gz"))
    assert board("archive", "--json").json == found | {"dry_run": False}
    assert board("archive").out == f"0 tasks went to {folder}.\n"
    (file,) = Path(folder).glob("*.gz")
    lines = gzip.decompress(file.read_bytes()).splitlines()
    assert [json.loads(line)["task"]["task_id"] for line in lines] == ["T-0", "T-1"]
    gone = board("show", "T-1")
    assert (gone.code, gone.out) == (1, "")
    assert gone.err == (
        f"Task “T-1” was archived on {file.name[:10]}; it was failed. All of it stands in the file archive/{file.name} "
        "of the board's data folder.\n"
    )
    again = board("submit", "tasks.json")
    assert "T-1  exists already, failed" in again.out
    assert board("show", "T-2").code == 0


def test_all_are_acknowledged_or_none(board: Run, failed: None) -> None:
    refused = board("acknowledge", "T-1", "T-3")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == "A task that is pending cannot be acknowledged.\n"
    assert board("show", "T-1", "--json").json["acknowledged_at"] is None
    assert board("acknowledge", "T-9").err == "There is no task “T-9”.\n"
    assert board("acknowledge", "T-1", "T-2", "--json").json == {
        "data": [{"task_id": "T-1", "acknowledged": True}, {"task_id": "T-2", "acknowledged": True}]
    }
    assert board("show", "T-2", "--json").json["acknowledged_at"] is not None
