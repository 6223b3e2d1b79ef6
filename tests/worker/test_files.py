"""Handlers and the board's files: read, fetched, kept; and what becomes of the task when they are not to be had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from board.files.ledger import find
from board.files.references import new_file_id
from board.ports import ContentGone, Job, Outcome, StorageError, Success
from tests.rig.working import OpenWorking, Probe, WorkingBoard

TEXT = "你好 ".encode() * 100_000  # more than one piece


def store(board: WorkingBoard, content: bytes = TEXT, name: str = "in.txt") -> str:
    with board.board.files.spool() as spool:
        spool.write(content)
        spool.finish()
        file_id: str = board.board.files.keep([(name, spool)], "key:n8n")[0]["file_id"]
        return file_id


def started(working: OpenWorking, run: Any) -> WorkingBoard:
    board = working(Probe(run))
    board.type("trial", "probe", retry={"max": 0})
    return board


def test_a_handler_reads_and_keeps_files_that_belong_to_its_task(working: OpenWorking, tmp_path: Path) -> None:
    async def upper(job: Job) -> Outcome:
        file_id = job.payload["photo"]["file"]
        about = await job.files.about(file_id)
        streamed = b"".join([piece async for piece in job.files.read(file_id)])
        async with job.files.local(file_id) as path:
            assert path.read_bytes() == streamed
        out = tmp_path / "made"
        out.write_bytes(streamed[:6])
        kept = await job.files.keep(out, "out.txt")
        return Success(result={"in": about.bytes, "files": [{"file_id": kept.file_id, "type": kept.type}]})

    board = started(working, upper)
    board.submit(payload={"photo": {"file": store(board)}})
    board.wait("T-1", "done")
    result = board.data()["result"]
    assert result["in"] == len(TEXT)
    [made] = result["files"]
    assert made["type"] == "text/plain"
    with board.board.db.read() as connection:
        row = find(connection, made["file_id"])
    assert row is not None
    assert row["requester"] == f"task:{board.task()['id']}"
    assert board.board.files.sweep() == 0
    assert list(board.board.files.folder.iterdir()) == []


def test_a_storage_without_a_folder_here_is_fetched(working: OpenWorking, monkeypatch: pytest.MonkeyPatch) -> None:
    async def read(job: Job) -> Outcome:
        async with job.files.local(job.payload["file"]) as path:
            return Success(result={"path": str(path), "bytes": len(path.read_bytes())})

    board = started(working, read)
    monkeypatch.setattr(board.board.files.storage, "local", lambda key: None)
    board.submit(payload={"file": store(board)})
    board.wait("T-1", "done")
    assert board.data()["result"]["bytes"] == len(TEXT)
    assert not Path(board.data()["result"]["path"]).exists()


@pytest.mark.parametrize(
    ("error", "error_class", "words"),
    [
        (
            StorageError("There is no room left in the folder. Make room on its disk.", transient=True),
            "transient",
            "room",
        ),
        (StorageError("The board may not use the folder.", transient=False), "permanent", "may not use"),
        (ContentGone("the folder"), "permanent", "missing from the folder"),
    ],
)
def test_what_the_storage_says_is_what_the_task_says(
    working: OpenWorking, monkeypatch: pytest.MonkeyPatch, error: StorageError, error_class: str, words: str
) -> None:
    async def read(job: Job) -> Outcome:
        async with job.files.local(job.payload["file"]):
            raise AssertionError

    def refuse(key: str) -> Path:
        raise error

    board = started(working, read)
    file_id = store(board)
    monkeypatch.setattr(board.board.files.storage, "local", refuse)
    board.submit(payload={"file": file_id})
    task = board.wait("T-1", "failed")
    assert (task["error_class"], task["error_cause"]) == (error_class, "precondition")
    assert words in task["last_error"]


def test_a_file_that_is_gone_is_a_permanent_failure(working: OpenWorking) -> None:
    async def read(job: Job) -> Outcome:
        await job.files.about(new_file_id())
        raise AssertionError

    board = started(working, read)
    board.submit()
    task = board.wait("T-1", "failed")
    assert task["error_class"] == "permanent"
    assert "Upload it again" in task["last_error"]
