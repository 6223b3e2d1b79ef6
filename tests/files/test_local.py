"""The folder as a storage."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from board.files import local
from board.files.local import LocalStorage, plain
from board.ports import StorageError
from tests.files.conformance import KEY, ONE, Promises


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "files")


class TestPromises(Promises):
    pass


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(ONE)
    return path


@pytest.mark.parametrize("other_disk", [False, True])
def test_a_file_is_on_the_disk_before_it_has_its_name(
    storage: LocalStorage, source: Path, monkeypatch: pytest.MonkeyPatch, other_disk: bool
) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda number: (done.append("sync"), fsync(number))[1])
    monkeypatch.setattr(Path, "replace", lambda self, to: (done.append("rename"), replace(self, to))[1])
    if other_disk:
        monkeypatch.setattr(os, "link", _refuse(errno.EXDEV))
    storage.put(KEY, source)
    assert done == ["sync", "rename", "sync", "sync"]
    assert b"".join(storage.read(KEY)) == ONE


def test_nothing_half_written_is_ever_seen(
    storage: LocalStorage, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", _refuse(errno.EXDEV))
    monkeypatch.setattr(local, "_to_disk", _refuse(errno.ENOSPC))
    with pytest.raises(StorageError, match="no room left"):
        storage.put(KEY, source)
    assert not storage.has(KEY)
    assert [it for it in storage.root.rglob("*") if it.is_file()] == []


@pytest.mark.parametrize(
    ("number", "transient", "words"),
    [
        (errno.ENOSPC, True, "no room left"),
        (errno.EDQUOT, True, "no room left"),
        (errno.EACCES, False, "right to read and write"),
        (errno.EROFS, False, "right to read and write"),
        (errno.ESTALE, True, "cannot be used"),
        (errno.ENAMETOOLONG, False, "cannot be used"),
    ],
)
def test_what_the_system_says_is_said_plainly(number: int, transient: bool, words: str) -> None:
    error = plain(OSError(number, os.strerror(number)), "the folder /srv/files")
    assert error.transient is transient
    assert words in str(error)
    assert "/srv/files" in str(error)
    assert str(error).endswith(".")


def test_what_a_killed_process_left_is_cleaned(storage: LocalStorage, source: Path) -> None:
    left = storage.root / "tmp" / "half"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    storage.put(KEY, source)
    assert storage.clean(time.time() - 60) == 0
    assert storage.clean(time.time() + 60) == 1
    assert not left.exists()
    assert storage.has(KEY)


def _refuse(number: int):  # type: ignore[no-untyped-def]
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return refuse
