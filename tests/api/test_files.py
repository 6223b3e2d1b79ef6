"""/files over real HTTP: limits at the byte, ranges, links, and nothing that runs in our origin."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from board.files.references import new_file_id
from tests.api.conftest import Api, OpenApi

HTML = b"<html><script>document.title='x'</script></html>"
FORM = "multipart/form-data; boundary=b"
PART = b'--b\r\nContent-Disposition: form-data; name="%s"; filename="f"\r\n\r\n'
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'


def upload(api: Api, *parts: tuple[str, bytes], field: str = "file") -> httpx2.Response:
    return api.post("/files", files=[(field, (name, content)) for name, content in parts])


def kept(api: Api, content: bytes = b"hello", name: str = "a.txt") -> dict[str, Any]:
    answer = upload(api, (name, content))
    assert answer.status_code == 201, answer.text
    file: dict[str, Any] = answer.json()
    return file


def raw(api: Api, file_id: str, **headers: str) -> httpx2.Response:
    return api.client.get(f"/files/{file_id}", headers=headers)


def temporary(api: Api) -> list[Path]:
    return [it for it in (api.board.settings.data_dir / "uploads").rglob("*") if it.is_file()]


def test_one_file_in_and_out(api: Api) -> None:
    answer = upload(api, ("报表（终稿）.txt", "内容".encode()))
    assert answer.status_code == 201
    file = answer.json()
    assert file == {"file_id": file["file_id"], "name": "报表（终稿）.txt", "bytes": 6, "type": "text/plain"}
    out = raw(api, file["file_id"])
    assert out.content == "内容".encode()
    assert out.headers["content-type"].startswith("text/plain")
    assert out.headers["content-length"] == "6"
    assert "%E6%8A%A5%E8%A1%A8" in out.headers["content-disposition"]
    assert out.headers["content-disposition"].startswith("attachment")
    assert temporary(api) == []


def test_several_files_of_one_name_are_all_kept(api: Api) -> None:
    data = upload(api, ("x.txt", b"one"), ("x.txt", b"two"), ("y", b"")).json()["data"]
    assert [(it["name"], it["bytes"]) for it in data] == [("x.txt", 3), ("x.txt", 3), ("y", 0)]
    assert [raw(api, it["file_id"]).content for it in data] == [b"one", b"two", b""]


@pytest.fixture
def small(open_api: OpenApi) -> Api:
    return open_api(max_file=100_000, max_upload=250_000)


@pytest.mark.parametrize(
    ("sizes", "status", "code"),
    [
        ([100_000], 201, None),
        ([100_001], 413, "file_too_large"),
        ([100_000, 100_000, 50_000], 201, None),
        ([100_000, 100_000, 50_001], 413, "upload_too_large"),
        ([99_999, 99_999, 99_999], 413, "upload_too_large"),
    ],
)
def test_limits_hold_at_the_byte_and_name_themselves(
    small: Api, sizes: list[int], status: int, code: str | None
) -> None:
    """B007: exactly at the cap works; one byte over is 413 that names the limit, and leaves nothing behind."""
    answer = upload(small, *(("f", b"x" * size) for size in sizes))
    assert answer.status_code == status, answer.text
    if code:
        assert answer.json()["code"] == code
        setting, limit = ("BOARD_MAX_FILE", 100_000) if code == "file_too_large" else ("BOARD_MAX_UPLOAD", 250_000)
        assert setting in answer.json()["message"]
        assert str(limit) in answer.json()["message"]
    assert temporary(small) == []


def test_a_body_without_end_is_stopped(small: Api) -> None:
    """It never says how long it is; it is refused as soon as it is over the limit."""

    def endless() -> Iterator[bytes]:
        yield PART % b"file"
        while True:
            yield b"x" * 65536

    try:
        status = small.client.post("/files", content=endless(), headers={"Content-Type": FORM}).status_code
    except httpx2.TransportError:  # the server has hung up on a caller who does not stop
        status = 413
    assert status == 413
    assert temporary(small) == []


def test_a_caller_who_hangs_up_leaves_nothing(api: Api) -> None:
    where = urlsplit(api.url)
    with socket.create_connection((where.hostname, where.port), timeout=10) as connection:
        connection.sendall(
            b"POST /api/v1/files HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n"
            + f"Authorization: Bearer {api.key}\r\n".encode()
            + b"Content-Type: multipart/form-data; boundary=b\r\n\r\n"
            + PART % b"file"
            + b"x" * 300_000
        )
    # Whatever came later is answered, so the server lives; its own clean-up of the first comes with it.
    assert kept(api)["bytes"] == 5
    end = time.monotonic() + 15
    while temporary(api):
        assert time.monotonic() < end, "a temporary file was left"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b"", FORM, 422, "missing"),
        (b"--b--\r\n", FORM, 422, "missing"),
        (b"no multipart at all", FORM, 400, "invalid_multipart"),
        (b"x", "multipart/form-data", 422, "not_multipart"),
        (b"{}", "application/json", 422, "not_multipart"),
        (
            b'--b\r\nContent-Disposition: form-data; name="other"\r\n\r\nx\r\n--b--\r\n',
            FORM,
            422,
            "unknown_field",
        ),
        (b"--b\r\n\r\nx\r\n--b--\r\n", FORM, 422, "unknown_field"),
        (
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\ncut',
            FORM,
            400,
            "invalid_multipart",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(api: Api, content: bytes, kind: str, status: int, code: str) -> None:
    answer = api.post("/files", content=content, headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert temporary(api) == []


def test_who_may(api: Api) -> None:
    file = kept(api)
    for scopes, may_upload, may_read in (
        (["submit"], 201, 404),
        (["work"], 201, 200),
        (["read"], 403, 200),
        (["review"], 403, 200),
    ):
        other = api.as_key(*scopes, name="-".join(scopes))
        assert upload(other, ("a", b"x")).status_code == may_upload, scopes
        assert raw(other, file["file_id"]).status_code == may_read, scopes
    assert httpx2.get(f"{api.url}/api/v1/files/{file['file_id']}", trust_env=False).status_code == 401
    submitter = api.as_key("submit", name="mine")
    assert raw(submitter, kept(submitter)["file_id"]).status_code == 200


@pytest.mark.parametrize(
    ("asked", "status", "content", "told"),
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=5-500", 206, b"56789", "bytes 5-9/10"),
        ("bytes=-500", 200, b"0123456789", None),
        ("bytes=0-9", 200, b"0123456789", None),
        ("bytes=10-", 416, b"", "bytes */10"),
        ("bytes=-0", 416, b"", "bytes */10"),
        ("bytes=3-2", 416, b"", "bytes */10"),
        ("bytes=0-1,4-5", 200, b"0123456789", None),
        ("lines=0-1", 200, b"0123456789", None),
        ("bytes=-", 200, b"0123456789", None),
    ],
)
def test_ranges(one_api: Api, asked: str, status: int, content: bytes, told: str | None) -> None:
    answer = raw(one_api, kept(one_api, b"0123456789")["file_id"], Range=asked)
    assert (answer.status_code, answer.content, answer.headers.get("content-range")) == (status, content, told)


def test_what_has_not_changed_is_not_sent_again(one_api: Api) -> None:
    file_id = kept(one_api)["file_id"]
    etag = raw(one_api, file_id).headers["etag"]
    assert raw(one_api, file_id, **{"If-None-Match": f'"x", {etag}'}).status_code == 304
    assert raw(one_api, file_id, **{"If-None-Match": '"x"'}).status_code == 200
    assert raw(one_api, file_id, Range="bytes=0-1", **{"If-Range": etag}).status_code == 206
    assert raw(one_api, file_id, Range="bytes=0-1", **{"If-Range": '"x"'}).status_code == 200


def test_head_tells_the_length_and_sends_nothing(one_api: Api) -> None:
    answer = one_api.client.head(f"/files/{kept(one_api)['file_id']}")
    assert answer.status_code == 200
    assert answer.content == b""


@pytest.mark.parametrize(
    ("name", "content"), [("d.png", HTML), ("x.svg", SVG), ("x.xml", b"<?xml?><a/>"), ("x.js", b"alert(1)")]
)
def test_nothing_runs_from_our_origin(one_api: Api, name: str, content: bytes) -> None:
    """B053: HTML called .png, and SVG with a script, are only ever a download."""
    file_id = kept(one_api, content, name)["file_id"]
    link = one_api.get(f"/files/{file_id}/link").json()["url"]
    for answer in (raw(one_api, file_id), _fetch(one_api, link)):
        assert answer.status_code == 200
        assert answer.headers["content-type"].split(";")[0] in ("application/octet-stream", "text/plain")
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]


def _fetch(api: Api, link: str) -> httpx2.Response:
    path = urlsplit(link).path
    return httpx2.get(f"{api.url}{path}", trust_env=False)


def test_a_link_works_without_a_key_until_its_time_is_over(api: Api, at: Any) -> None:
    file = kept(api, name='q"uo te.txt')
    made = api.get(f"/files/{file['file_id']}/link", params={"seconds": 60}).json()
    assert {name: made[name] for name in file} == file
    assert made["url"].startswith(api.board.settings.public_url)
    assert made["url"].endswith(".txt")
    assert _fetch(api, made["url"]).content == b"hello"
    assert _fetch(api, made["url"].replace("/files/gAAAA", "/files/gAAAB")).status_code == 410
    at(59)
    assert _fetch(api, made["url"]).status_code == 200
    at(61)
    gone = _fetch(api, made["url"])
    assert (gone.status_code, gone.json()["code"]) == (410, "link_expired")
    assert file["file_id"] not in gone.text


@pytest.mark.parametrize("seconds", ["0", "604801", "x"])
def test_how_long_a_link_may_work(one_api: Api, seconds: str) -> None:
    file_id = kept(one_api)["file_id"]
    assert one_api.get(f"/files/{file_id}/link", params={"seconds": seconds}).status_code == 422


def test_a_payload_names_files_that_are_there(api: Api) -> None:
    file_id, unknown = kept(api)["file_id"], new_file_id()
    assert api.submit(payload={"photo": {"file": file_id}, "other": {"file": "photo.png"}})["payload"]["photo"]
    answer = api.post("/tasks", json={"type": "trial", "task_id": "T-2", "payload": {"list": [{"file": unknown}]}})
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_file")
    assert "payload.list[0].file" in answer.json()["message"]
    bulk = api.post("/tasks/bulk", json={"tasks": [{"type": "trial", "task_id": "T-3", "payload": {"file": unknown}}]})
    assert bulk.json()["data"][0]["code"] == "unknown_file"
    task = api.task()
    edited = api.patch("/tasks/T-1", json={"version": task["version"], "payload": {"file": unknown}})
    assert edited.status_code == 422


def test_a_file_lives_as_long_as_its_task(api: Api, at: Any) -> None:
    used, unused, later = (kept(api, name=name)["file_id"] for name in "abc")
    task = api.submit(payload={"file": used})
    assert api.patch("/tasks/T-1", json={"version": task["version"], "payload": {"file": later}}).status_code == 200
    at(90_000)
    api.board.files.sweep()
    assert [raw(api, it).status_code for it in (used, unused, later)] == [200, 404, 200]


def test_a_storage_that_is_away_is_503_and_says_why(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    file_id = kept(api)["file_id"]
    storage = api.board.settings.data_dir / "files"
    storage.rename(storage.with_name("moved"))
    answer = api.get(f"/files/{file_id}")
    assert (answer.status_code, answer.json()["code"]) == (503, "storage_unavailable")
    assert "missing from the folder" in answer.json()["message"]
    caplog.clear()
