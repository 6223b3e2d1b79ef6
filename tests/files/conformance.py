"""What every storage promises; run by one test file for each kind."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest

from board.ports import ContentGone, Storage

ONE = b"0123456789" * 100_000  # a megabyte: several pieces
KEY = hashlib.sha256(ONE).hexdigest()


class Promises:
    """A subclass gives the fixture `storage`."""

    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        path = tmp_path / "source"
        path.write_bytes(ONE)
        return path

    def test_what_is_put_is_read_whole_or_in_part(self, storage: Storage, source: Path) -> None:
        assert not storage.has(KEY)
        storage.put(KEY, source)
        assert storage.has(KEY)
        assert b"".join(storage.read(KEY)) == ONE
        assert b"".join(storage.read(KEY, 7)) == ONE[7:]
        assert b"".join(storage.read(KEY, 999_990, 5)) == ONE[999_990:999_995]
        assert b"".join(storage.read(KEY, 999_995, 50)) == ONE[999_995:]
        assert source.read_bytes() == ONE

    def test_a_key_that_is_there_is_kept(self, storage: Storage, source: Path) -> None:
        storage.put(KEY, source)
        source.unlink()
        source.write_bytes(b"other")
        storage.put(KEY, source)
        assert b"".join(storage.read(KEY)) == ONE

    def test_an_empty_file_is_a_file(self, storage: Storage, source: Path) -> None:
        source.write_bytes(b"")
        storage.put(KEY, source)
        assert storage.has(KEY)
        assert b"".join(storage.read(KEY)) == b""

    def test_what_is_not_there_is_said(self, storage: Storage) -> None:
        with pytest.raises(ContentGone):
            b"".join(storage.read(KEY))
        storage.remove(KEY)

    def test_removed_is_gone(self, storage: Storage, source: Path) -> None:
        storage.put(KEY, source)
        storage.remove(KEY)
        assert not storage.has(KEY)
        assert list(storage.contents()) == []

    def test_contents_are_listed_with_their_time(self, storage: Storage, source: Path) -> None:
        keys = {hashlib.sha256(str(n).encode()).hexdigest() for n in range(20)}
        for key in keys:
            storage.put(key, source)
        listed = dict(storage.contents())
        assert set(listed) == keys
        assert all(abs(written - source.stat().st_mtime) < 60 for written in listed.values())

    def test_many_at_once_keep_one(self, storage: Storage, tmp_path: Path) -> None:
        failed: list[BaseException] = []

        def put(number: int) -> None:
            source = tmp_path / str(number)
            source.write_bytes(ONE)
            try:
                storage.put(KEY, source)
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=put, args=(n,)) for n in range(8)]
        for it in threads:
            it.start()
        for it in threads:
            it.join()
        assert failed == []
        assert [key for key, _ in storage.contents()] == [KEY]
        assert b"".join(storage.read(KEY)) == ONE
