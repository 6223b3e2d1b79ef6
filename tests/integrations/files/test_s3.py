"""S3 as a storage, against a server that speaks it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from board.files.storage import open_storage
from board.ports import StorageError
from integrations.files.s3 import S3Storage, open_s3
from tests.files.conformance import KEY, ONE, Promises
from tests.integrations.files.test_handler import content, store, thumbnails
from tests.rig.working import OpenWorking


@pytest.fixture
def storage(bucket: str) -> S3Storage:
    return open_s3(bucket)


class TestPromises(Promises):
    pass


def test_a_large_file_goes_in_parts(storage: S3Storage, tmp_path: Path) -> None:
    large = bytes(range(256)) * 50_000  # 12.8 MB: three parts
    source = tmp_path / "large"
    source.write_bytes(large)
    key = hashlib.sha256(large).hexdigest()
    storage.put(key, source)
    assert hashlib.sha256(b"".join(storage.read(key))).hexdigest() == key
    assert b"".join(storage.read(key, 5_000_000, 1000)) == large[5_000_000:5_001_000]


def test_work_on_files_through_s3(working_sqlite: OpenWorking, bucket: str) -> None:
    board = working_sqlite(storage_url=bucket)
    thumbnails(board)
    board.submit(payload={"photo": store(board, "images/d_exif6_gps.jpg")})
    board.wait("T-1", "done")
    [made] = board.data()["result"]["files"]
    assert len(content(board, made["file_id"])) == made["bytes"]
    assert list(board.board.files.folder.iterdir()) == [], "what was fetched is gone again"


def test_two_boards_of_one_bucket_do_not_see_each_other(bucket: str, tmp_path: Path) -> None:
    one, other = open_s3(bucket), open_s3(bucket.replace("/board?", "/other?"))
    source = tmp_path / "x"
    source.write_bytes(ONE)
    one.put(KEY, source)
    assert not other.has(KEY)
    assert list(other.contents()) == []


def test_a_server_that_is_away_is_a_passing_fault_without_secrets(tmp_path: Path) -> None:
    storage = open_s3("s3://key:secret@b?endpoint=http://127.0.0.1:1")
    with pytest.raises(StorageError, match="BOARD_STORAGE_URL") as raised:
        storage.has(KEY)
    assert raised.value.transient
    assert "secret" not in str(raised.value) + storage.where


def test_a_bucket_that_is_not_there_is_said(s3_endpoint: str, tmp_path: Path) -> None:
    source = tmp_path / "x"
    source.write_bytes(b"x")
    with pytest.raises(StorageError, match="does not exist") as raised:
        open_s3(f"s3://k:s@nobody?endpoint={s3_endpoint}").put(KEY, source)
    assert not raised.value.transient


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("s3:", "bucket"),
        ("s3://", "bucket"),
        ("s3://b?endpont=x", "endpont"),
        ("s3://b?endpoint=x", "http"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(url: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        open_storage(url, tmp_path)
