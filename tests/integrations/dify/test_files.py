"""B023: a file goes with its run, under the run's own user, or the run does not go."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from board.ports import ErrorClass, Failure, FileMissing, StoredFile, Success
from integrations.dify.client import Upload
from integrations.dify.files import BadFile, file_item
from tests.integrations.dify.attempt import run
from tests.integrations.dify.conftest import Standin
from tests.integrations.dify.doubles import NotedJob, connection

PHOTO = {"name": "photo “1”.png", "base64": base64.b64encode(b"\x89PNG").decode()}
PAGE = {"url": "https://example.org/a/report.pdf?v=1"}


def job(standin: Standin, user: str = "board:1:1", **inputs: Any) -> NotedJob:
    return NotedJob(connection(standin.url), {"text": "We need 200 seats."} | inputs, user=user)


def uploads(standin: Standin) -> int:
    return sum(entry["path"].endswith("/files/upload") for entry in standin.seen()["requests"])


async def test_a_file_by_its_address_and_one_that_is_uploaded_go_with_the_run(standin: Standin) -> None:
    outcome = await run(job(standin, attachment=PHOTO, files=[PAGE]))
    assert isinstance(outcome, Success)
    [started] = standin.seen()["runs"]
    page, photo = started["files"]
    assert page == {"type": "document", "transfer_method": "remote_url", "url": PAGE["url"]}
    assert (photo["type"], photo["transfer_method"]) == ("image", "local_file")
    assert started["inputs"]["attachment"] == photo
    assert uploads(standin) == 1


async def test_every_attempt_uploads_anew_under_its_own_user(standin: Standin) -> None:
    for user in ("board:1:1", "board:1:2"):
        assert isinstance(await run(job(standin, user, attachment=PHOTO)), Success)
    first, second = standin.seen()["runs"]
    assert [first["user"], second["user"]] == ["board:1:1", "board:1:2"]
    assert first["files"][0]["upload_file_id"] != second["files"][0]["upload_file_id"]


@pytest.mark.parametrize("lost", [1, 2])
async def test_an_upload_that_dify_forgot_is_made_once_more_and_then_it_fails(standin: Standin, lost: int) -> None:
    standin.faults({"fault": "forget_files", "times": lost})
    outcome = await run(job(standin, attachment=PHOTO))
    assert uploads(standin) == 2
    if lost == 1:
        assert isinstance(outcome, Success)
        assert standin.seen()["runs"][-1]["files"]
    else:
        assert isinstance(outcome, Failure)
        assert (outcome.error_class, outcome.rule) == (ErrorClass.PERMANENT, "upload-lost")
        assert standin.seen()["runs"] == []


async def test_a_run_that_silently_goes_without_its_files_is_stopped_and_fails(standin: Standin) -> None:
    standin.faults({"fault": "hide_files", "seconds": 30})
    outcome = await run(job(standin, files=[PAGE]))
    assert isinstance(outcome, Failure)
    assert (outcome.error_class, outcome.rule) == (ErrorClass.PERMANENT, "files-left-out")
    assert [entry["path"].rpartition("/")[2] for entry in standin.seen()["requests"]][-1] == "stop"


async def test_a_file_that_dify_refuses_fails_and_starts_nothing(standin: Standin) -> None:
    standin.faults({"fault": "http", "on": "upload", "http_status": 413, "code": "file_too_large", "message": ""})
    it = job(standin, attachment=PHOTO)
    outcome = await run(it)
    assert isinstance(outcome, Failure)
    assert (outcome.rule, it.sent) == ("file-refused", [])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (7, "must be a file"),
        ({"name": "a.txt", "base64": "§"}, "base64"),
        ({"name": "", "text": "x"}, "1 to 200"),
        ({"url": "file:///etc/passwd"}, "http or https"),
        ({"url": "https://example.org/thing"}, "needs a `type`"),
        ({"url": "https://example.org/a.png", "type": "picture"}, "one of document"),
        ({"name": "big.bin", "text": "x" * (15 * 1024**2 + 1)}, "takes at most"),
    ],
)
def test_what_is_no_file_is_told(value: Any, said: str) -> None:
    with pytest.raises(BadFile, match=said):
        file_item(value)


class Kept:
    """The board's files: one photo."""

    def __init__(self, size: int = 4) -> None:
        self.size = size

    async def about(self, file_id: str) -> StoredFile:
        if file_id != "f-1":
            raise FileMissing(file_id)
        return StoredFile("f-1", "photo.png", "image/png", self.size, "0" * 64)

    async def read(self, file_id: str) -> AsyncIterator[bytes]:
        yield b"\x89P"
        yield b"NG"


async def test_a_file_of_the_board_is_uploaded(standin: Standin) -> None:
    it = job(standin, attachment={"file": "f-1"})
    it.files = Kept()
    assert isinstance(await run(it), Success)
    [started] = standin.seen()["runs"]
    assert started["files"][0]["type"] == "image"
    assert uploads(standin) == 1


async def test_a_file_of_the_board_that_is_too_large_or_gone_starts_nothing(standin: Standin) -> None:
    large = job(standin, attachment={"file": "f-1"})
    large.files = Kept(10 * 1024**2 + 1)
    outcome = await run(large)
    assert isinstance(outcome, Failure)
    assert "Dify takes at most" in outcome.message
    gone = job(standin, attachment={"file": "f-2"})
    gone.files = Kept()
    with pytest.raises(FileMissing):  # the board makes a failure of it
        await run(gone)
    assert (uploads(standin), standin.seen()["runs"]) == (0, [])


def test_a_name_cannot_break_out_of_the_form() -> None:
    body = Upload('a".txt\r\nX: y', "text/plain", b"hello").as_form("B", "u").decode()
    assert 'filename="a_.txt__X: y"' in body
    assert body.endswith("hello\r\n--B--\r\n")
