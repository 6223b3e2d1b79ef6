"""The files of the archive: whole at every moment, in order, for the board's own user only."""

import gzip
import os
import subprocess
from datetime import date
from pathlib import Path

import pytest

from board.upkeep.shelf import Shelf

DAY, NEXT = date(2026, 11, 30), date(2026, 12, 1)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "data" / "archive")


def names(shelf: Shelf) -> list[str]:
    return sorted(file.name for file in shelf.folder.iterdir() if file.name != ".lock")


def test_parts_become_one_file_a_day_in_their_order(shelf: Shelf) -> None:
    with shelf.locked():
        for number in range(12):
            shelf.put(DAY, [f"{number}\n".encode()])
        shelf.put(NEXT, [b"next\n"])
        shelf.collect()
        shelf.put(DAY, [b"12\n"])
        shelf.collect()
        shelf.collect()
    assert names(shelf) == ["2026-11-30.jsonl.gz", "2026-12-01.jsonl.gz"]
    read = subprocess.run(["zcat", shelf.folder / "2026-11-30.jsonl.gz"], capture_output=True, check=True)
    assert read.stdout.decode().split() == [str(number) for number in range(13)]


def test_a_part_can_be_read_before_it_is_collected(shelf: Shelf) -> None:
    with shelf.locked():
        part = shelf.put(DAY, [b"a\n", b"b\n"])
        assert gzip.decompress(part.read_bytes()) == b"a\nb\n"
        assert part.match("*.jsonl.gz")
        shelf.put_again(part, [b"b\n"])
        assert gzip.decompress(part.read_bytes()) == b"b\n"
        shelf.put_again(part, [])
    assert names(shelf) == []


def test_only_its_own_user_may_read(shelf: Shelf) -> None:
    with shelf.locked():
        shelf.put(DAY, [b"a\n"])
        shelf.collect()
    assert shelf.folder.stat().st_mode & 0o777 == 0o700
    assert (shelf.folder / "2026-11-30.jsonl.gz").stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_written_leaves_nothing_behind(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    with shelf.locked():
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            shelf.put(DAY, [b"a\n"])
    assert names(shelf) == []


def test_drafts_of_a_killed_process_are_cleared_away(shelf: Shelf) -> None:
    with shelf.locked():
        (shelf.folder / ".draft-0123").write_bytes(b"half of")
    with shelf.locked():
        assert names(shelf) == []
