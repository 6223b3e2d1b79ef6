"""The ledger of files: kept together or not at all, gone when nobody needs them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from board.access.rights import key_actor
from board.db.engine import Database
from board.files import ledger
from board.files.identity import WrongStorage
from board.files.ledger import Files
from board.files.local import LocalStorage
from board.files.models import files as table
from board.files.spool import TooLarge
from board.ports import StorageError
from board.tasks.ledger import Ledger
from tests.heart import CALLER, new_task, settable_clock

DAY = 86_400.0


@pytest.fixture
def files(db: Database, tmp_path: Path) -> Files:
    return Files(db, LocalStorage(tmp_path / "storage"), tmp_path / "uploads", 1000)


@pytest.fixture
def at(db: Database) -> Iterator[Any]:
    with settable_clock(db) as shift:
        yield shift


def keep(files: Files, content: bytes = b"hello", name: str = "a.txt", task: int | None = None) -> dict[str, Any]:
    with files.spool() as spool:
        spool.write(content)
        spool.finish()
        return ledger.document(files.keep([(name, spool)], "key:n8n", task)[0])


def new(db: Database, task_id: str = "T-1") -> int:
    with db.write() as tx:
        return Ledger().create(tx, [new_task(task_id)], CALLER)[task_id]


def count(db: Database) -> int:
    with db.read() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def content(files: Files) -> list[str]:
    return sorted(key for key, _ in files.storage.contents() if len(key) == 64)


def test_a_file_is_kept_and_found(files: Files, db: Database) -> None:
    kept = keep(files, "测试".encode(), "报表.txt")
    assert kept == {"file_id": kept["file_id"], "name": "报表.txt", "bytes": 6, "type": "text/plain"}
    with db.read() as connection:
        row = ledger.find(connection, kept["file_id"])
        assert row is not None
        assert b"".join(files.storage.read(row["sha256"])) == "测试".encode()
        assert files.unknown(connection, {kept["file_id"], "file_0"}) == {"file_0"}
    assert list(files.folder.iterdir()) == [], "no temporary file is left"


def test_equal_content_is_stored_once_under_both_names(files: Files) -> None:
    one, two = keep(files, name="one.txt"), keep(files, name="one.txt")
    assert one["file_id"] != two["file_id"]
    assert len(content(files)) == 1


def test_a_file_too_large_by_a_byte_leaves_nothing(files: Files) -> None:
    assert keep(files, b"x" * 1000)["bytes"] == 1000
    with pytest.raises(TooLarge, match="1000 bytes"):
        keep(files, b"x" * 1001)
    assert list(files.folder.iterdir()) == []


def test_of_several_all_are_kept_or_none(files: Files, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    put = files.storage.put
    calls: list[str] = []

    def fails_at_third(key: str, source: Path) -> None:
        calls.append(key)
        if len(calls) == 3:
            raise StorageError("There is no room left.", transient=True)
        put(key, source)

    files.identity.check()
    monkeypatch.setattr(files.storage, "put", fails_at_third)
    with files.spool() as one, files.spool() as two, files.spool() as three:
        for number, it in enumerate((one, two, three)):
            it.write(bytes([number]))
            it.finish()
        with pytest.raises(StorageError):
            files.keep([("1", one), ("2", two), ("3", three)], "key:n8n")
    assert count(db) == 0
    assert list(files.folder.iterdir()) == []


def test_what_no_task_needs_goes_after_a_day_and_no_sooner(files: Files, db: Database, at: Any) -> None:
    unused, used = keep(files, b"unused"), keep(files, b"used")
    task = new(db)
    with db.write() as tx:
        files.use(tx, task, [used["file_id"], used["file_id"], "file_unknown"])
        files.use(tx, task, [used["file_id"]])
    at(DAY - 60)
    assert files.sweep() == 0
    at(DAY + 60)
    assert files.sweep() == 1
    with db.read() as connection:
        assert ledger.find(connection, unused["file_id"]) is None
        assert ledger.find(connection, used["file_id"]) is not None
    assert len(content(files)) == 1


def test_shared_content_stays_as_long_as_one_file_has_it(files: Files, db: Database, at: Any) -> None:
    keep(files, b"same")
    keep(files, b"same", task=new(db))
    at(DAY + 60)
    assert files.sweep() == 1
    assert len(content(files)) == 1


def test_content_of_an_upload_that_was_cut_goes(files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(files, b"kept")
    (tmp_path / "x").write_bytes(b"orphan")
    files.storage.put("0" * 64, tmp_path / "x")
    assert files.sweep_content() == 0, "it may be on its way still"
    monkeypatch.setattr("board.files.ledger.UNUSED_SECONDS", -60.0)
    assert files.sweep_content() == 1
    assert "0" * 64 not in content(files)
    assert len(content(files)) == 1


def test_content_that_was_swept_in_the_middle_of_an_upload_is_put_again(
    files: Files, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the moment it is stored and the moment its row stands, a sweep may take old content of the same kind."""
    files.identity.check()
    put = files.storage.put
    swept: list[str] = []

    def put_and_lose_once(key: str, source: Path) -> None:
        put(key, source)
        if not swept:
            swept.append(key)
            files.storage.remove(key)

    monkeypatch.setattr(files.storage, "put", put_and_lose_once)
    kept = keep(files, b"precious")
    assert swept
    with db.read() as connection:
        row = ledger.find(connection, kept["file_id"])
    assert row is not None
    assert b"".join(files.storage.read(row["sha256"])) == b"precious"


def test_sweeping_beside_uploads_loses_nothing(files: Files, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything counts as old here, and all uploads are of the same two contents."""
    monkeypatch.setattr("board.files.ledger.UNUSED_SECONDS", -3600.0)
    task, over = new(db), threading.Event()
    failed: list[BaseException] = []

    def sweep() -> None:
        while not over.is_set():
            try:
                files.sweep_content()
            except BaseException as error:
                failed.append(error)

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        kept = [keep(files, bytes([number % 2]), task=task) for number in range(20)]
    finally:
        over.set()
        sweeper.join()
    assert failed == []
    with db.read() as connection:
        for it in kept:
            row = ledger.find(connection, it["file_id"])
            assert row is not None
            assert len(b"".join(files.storage.read(row["sha256"]))) == 1


def test_who_may_read_a_file(files: Files, db: Database) -> None:
    mine = keep(files)
    made = keep(files, b"made", task=new(db))
    with db.write() as tx:
        tx.execute(table.update().where(table.c.file_id == made["file_id"]).values(requester="task:1"))
    with db.read() as connection:
        for scopes, name, own, of_task in (
            (["submit"], "n8n", True, True),
            (["submit"], "other", False, False),
            (["read"], "other", True, True),
            (["work"], "other", True, True),
            (["review"], "other", True, True),
        ):
            for file, allowed in ((mine, own), (made, of_task)):
                if allowed:
                    assert ledger.visible(connection, key_actor(name, scopes), file["file_id"])["name"] == "a.txt"
                else:
                    with pytest.raises(ledger.NoSuchFile):
                        ledger.visible(connection, key_actor(name, scopes), file["file_id"])


def test_another_storage_than_the_boards_is_refused(files: Files, db: Database, tmp_path: Path) -> None:
    keep(files)
    other = Files(db, LocalStorage(tmp_path / "elsewhere"), tmp_path / "uploads", 1000)
    with pytest.raises(WrongStorage, match="elsewhere"):
        keep(other)
    assert "BOARD_STORAGE_URL" in (other.identity.problem() or "")
    same = Files(db, LocalStorage(tmp_path / "storage"), tmp_path / "uploads", 1000)
    assert same.identity.problem() is None
    assert keep(same)["bytes"] == 5
    assert count(db) == 2


def test_processes_that_start_at_once_agree_on_the_mark(db: Database, tmp_path: Path) -> None:
    starts = [Files(db, LocalStorage(tmp_path / "storage"), tmp_path / "uploads", 1000) for _ in range(6)]
    failed: list[BaseException] = []

    def check(files: Files) -> None:
        try:
            files.identity.check()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=check, args=(it,)) for it in starts]
    for it in threads:
        it.start()
    for it in threads:
        it.join()
    assert failed == []


def test_a_folder_that_cannot_be_written_is_said(db: Database, tmp_path: Path) -> None:
    (tmp_path / "uploads").write_text("a file where a folder should be")
    files = Files(db, LocalStorage(tmp_path / "storage"), tmp_path / "uploads", 1000)
    with pytest.raises(StorageError, match="uploads"):
        files.spool()


def test_what_killed_processes_left_half_written_goes_after_a_day(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep(files)
    left = [files.folder / "upload", tmp_path / "storage" / "tmp" / "half"]
    for it in left:
        it.parent.mkdir(exist_ok=True)
        it.write_bytes(b"half")
    assert files.clean() == 0, "it may be on its way still"
    monkeypatch.setattr("board.files.ledger.UNUSED_SECONDS", -60.0)
    assert files.clean() == 2
    assert not any(it.exists() for it in left)
    assert kept["bytes"] == 5
    assert len(content(files)) == 1
