"""`file.put`: to a server that takes PUT and to one that speaks S3, whole, under safe names, and told truly."""

from __future__ import annotations

import base64
import hashlib
from typing import Any
from urllib.parse import unquote

import boto3
import pytest

from board.catalogue.apply import BadCatalogue
from board.catalogue.trial import Trial
from integrations.files.put.names import MAX_PART, BadName, safe_part, safe_path
from tests.integrations.files.test_handler import content, store
from tests.rig.ports import free_port
from tests.rig.receiver import Receiver, Reply
from tests.rig.working import OpenWorking, WorkingBoard

THUMBNAIL = {"use": "image.thumbnail", "size": 64}
PUT = {"use": "file.put", "connection": "shelf", "inputs": {"files": "{{ result.files }}"}}


def shelf(board: WorkingBoard, url: str, action: dict[str, Any] | None = None, **connection: Any) -> None:
    board.apply(connections=[{"name": "shelf", "kind": "files", "url": url, **connection}])
    inputs = {"inputs": action} if action else {}
    board.type(use="image.thumbnail", handler=THUMBNAIL, action=PUT | inputs)


def photo(board: WorkingBoard, name: str = "照片 1.jpg") -> dict[str, str]:
    return store(board, "images/d_exif6_gps.jpg", name)


def test_what_was_made_is_put_whole_under_the_tasks_name(working: OpenWorking, receiver: Receiver) -> None:
    receiver.default = Reply(201)
    board = working()
    login = {"basic": {"user": "board", "password": "密码"}}
    shelf(board, f"{receiver.url}/in/box", auth=login)
    board.submit(
        "订单 7", payload={"files": [photo(board), photo(board, "b.jpg"), store(board, "images/d_rgba.png", "b.png")]}
    )
    board.wait("订单 7", "done")
    made = [it["file_id"] for it in board.data("订单 7")["result"]["files"]]
    came = receiver.requests
    assert [unquote(it.path) for it in came] == [
        f"/in/box/订单 7/{name}" for name in ("照片 1-64.jpg", "b-64.jpg", "b-64.png")
    ]
    assert {it.method for it in came} == {"PUT"}
    assert [it.body for it in came] == [content(board, file_id) for file_id in made]
    assert came[0].headers["content-type"] == "image/jpeg"
    assert came[0].headers["content-length"] == str(len(came[0].body))
    assert "transfer-encoding" not in came[0].headers
    assert came[0].headers["authorization"] == "Basic " + base64.b64encode("board:密码".encode()).decode()
    [operation] = board.operations("订单 7")
    assert (operation["kind"], operation["status"]) == ("file.put", "confirmed")
    assert operation["external_reference"] == receiver.url + came[0].path
    assert [it["outcome"] for it in board.deliveries()] == ["confirmed"] * 3


def test_two_files_of_one_name_do_not_meet(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite()
    board.apply(connections=[{"name": "shelf", "kind": "files", "url": receiver.url}])
    board.type(
        use="file.put", handler={"connection": "shelf", "inputs": {"files": "{{ payload.files }}", "folder": "a/b"}}
    )
    both = [photo(board, "b.jpg"), store(board, "images/d_rgba.png", "b.jpg")]
    board.submit(payload={"files": both})
    board.wait("T-1", "done")
    assert [it.path for it in receiver.requests] == ["/a/b/b.jpg", "/a/b/b-2.jpg"]
    assert len({it.body for it in receiver.requests}) == 2


def test_a_large_file_goes_out_in_pieces(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite()
    large = bytes(range(256)) * 20_000
    with board.board.files.spool() as spool:
        spool.write(large)
        spool.finish()
        file = board.board.files.keep([("large.bin", spool)], "key:n8n")[0]["file_id"]
    board.apply(connections=[{"name": "shelf", "kind": "files", "url": receiver.url}])
    board.type(use="file.put", handler={"connection": "shelf"})
    board.submit(payload={"file": file})
    board.wait("T-1", "done")
    [came] = receiver.requests
    assert hashlib.sha256(came.body).digest() == hashlib.sha256(large).digest()
    [put] = board.data()["result"]["put"]
    assert put == {"file_id": file, "name": "T-1/large.bin", "url": receiver.url + came.path, "bytes": len(large)}


def test_an_empty_file_is_put_too(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite()
    with board.board.files.spool() as spool:
        spool.finish()
        file = board.board.files.keep([("empty.txt", spool)], "key:n8n")[0]["file_id"]
    board.apply(connections=[{"name": "shelf", "kind": "files", "url": receiver.url}])
    board.type(use="file.put", handler={"connection": "shelf"})
    board.submit(payload={"file": file})
    board.wait("T-1", "done")
    assert [(it.body, it.headers["content-length"]) for it in receiver.requests] == [(b"", "0")]


@pytest.mark.parametrize(
    "reply", [Reply(503), Reply(500), Reply(429), Reply(close=True)], ids=["503", "500", "429", "cut"]
)
def test_what_passes_is_put_again_under_the_same_name(working: OpenWorking, receiver: Receiver, reply: Reply) -> None:
    receiver.reply(reply)
    board = working()
    shelf(board, receiver.url)
    board.submit(payload={"photo": photo(board)})
    board.wait("T-1", "done")
    assert len({it.path for it in receiver.requests}) == 1
    assert [it["outcome"] for it in board.deliveries()] == ["transient", "confirmed"]
    assert board.operations()[0]["status"] == "confirmed"


@pytest.mark.parametrize(
    ("status", "cause", "words"),
    [
        (403, "auth", "Check the credentials"),
        (401, "auth", "Check the credentials"),
        (404, "upstream_4xx", "answered 404"),
        (507, "upstream_5xx", "answered 507"),
        (302, "upstream_4xx", "answered 302"),
    ],
)
def test_what_stays_fails_in_words(
    working_sqlite: OpenWorking, receiver: Receiver, status: int, cause: str, words: str
) -> None:
    receiver.default = Reply(status, headers={"Location": f"{receiver.url}/elsewhere"})
    board = working_sqlite()
    shelf(board, receiver.url)
    board.submit(payload={"photo": photo(board)}, max_retries=0)
    failed = board.wait("T-1", "failed")
    assert failed["error_cause"] == cause
    assert words in failed["last_error"]
    assert len(receiver.requests) == 1


def test_a_server_that_is_away_is_tried_again(working_sqlite: OpenWorking) -> None:
    board = working_sqlite()
    shelf(board, f"http://127.0.0.1:{free_port()}")
    board.submit(payload={"photo": photo(board)}, max_retries=1)
    failed = board.wait("T-1", "failed")
    assert (failed["error_cause"], failed["retry_count"]) == ("network", 1)


def test_a_name_of_ones_own(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite()
    shelf(board, receiver.url, {"file": "{{ result.files[0].file_id }}", "name": "../{{ payload.day }}/../a?b.jpg"})
    board.submit(payload={"photo": photo(board), "day": "2026/11"})
    board.wait("T-1", "done")
    assert [unquote(it.path) for it in receiver.requests] == ["/2026/11/a_b.jpg"]


def test_one_name_is_for_one_file(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite()
    shelf(board, receiver.url, {"files": "{{ result.files }}", "name": "a.jpg"})
    board.submit(payload={"files": [photo(board), photo(board, "b.jpg")]})
    assert "inputs.folder" in board.wait("T-1", "failed")["last_error"]
    assert receiver.requests == []


def test_into_a_bucket(working_sqlite: OpenWorking, s3_endpoint: str) -> None:
    client = boto3.client(
        "s3", endpoint_url=s3_endpoint, aws_access_key_id="k", aws_secret_access_key="s", region_name="eu-north-1"
    )
    client.create_bucket(Bucket="shelf", CreateBucketConfiguration={"LocationConstraint": "eu-north-1"})
    board = working_sqlite()
    shelf(board, f"{s3_endpoint}/shelf/in%20box", key="k", secret="s-e-c-r-e-t", region="eu-north-1")
    board.submit(payload={"photo": photo(board)})
    board.wait("T-1", "done")
    [made] = board.data()["result"]["files"]
    found = client.get_object(Bucket="shelf", Key="in box/T-1/照片 1-64.jpg")
    assert found["Body"].read() == content(board, made["file_id"])
    assert found["ContentType"] == "image/jpeg"
    [operation] = board.operations()
    assert operation["external_reference"].startswith(f"{s3_endpoint}/shelf/in")
    assert "ignature" not in str(dict(operation)), "what a signed address holds is a secret for a while"
    assert "ignature" not in str([dict(it) for it in board.deliveries()])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"region": "eu"}, "needs key and secret"),
        ({"key": "k", "secret": "some-long-secret"}, "which needs region too"),
        (
            {"region": "eu", "key": "k", "secret": "some-long-secret", "auth": {"header": {"X-A": "b"}}},
            "leave auth out",
        ),
        ({"auth": {"jwt": {"secret": "s"}}}, "basic"),
        ({"url": "smtp://mail.example.org"}, "begins with http"),
        ({"kind": "webhook", "region": "eu"}, "kind files"),
    ],
)
def test_a_connection_that_does_not_fit_is_refused(
    working_sqlite: OpenWorking, more: dict[str, Any], words: str
) -> None:
    board = working_sqlite()
    with pytest.raises(BadCatalogue, match=words):
        board.apply(connections=[{"name": "shelf", "kind": "files", "url": "https://files.example.org/in", **more}])


@pytest.mark.parametrize(
    ("inputs", "words"), [({"name": "a"}, "inputs.files"), ({"files": "x", "path": "a"}, "inputs.path")]
)
def test_inputs_that_cannot_be_meant_are_refused(
    working_sqlite: OpenWorking, inputs: dict[str, Any], words: str
) -> None:
    board = working_sqlite()
    with pytest.raises(BadCatalogue, match=words):
        shelf(board, "https://files.example.org/in", inputs)


def test_the_connection_is_tried_without_writing(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite()
    shelf(board, receiver.url)
    trial = Trial(board.board.catalogue, board.board.handlers, [])
    for status, verdict in ((404, "ok"), (200, "ok"), (403, "wrong"), (502, "wrong")):
        receiver.default = Reply(status, body=b"")
        with board.board.db.read() as connection:
            view, users = trial.read(connection, "shelf")
        assert [it.status for it in trial.look(view, users)] == [verdict]
    assert {it.method for it in receiver.requests} == {"HEAD"}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a/b.txt", "a_b.txt"),
        ("..\\..\\x", "_.._x"),
        (".hidden", "hidden"),
        ("con\u202egpj.exe", "con_gpj.exe"),
        ("  a b . ", "a b"),
        ("x" * 300 + ".jpeg", "x" * (MAX_PART - 5) + ".jpeg"),
        ("照" * 100 + ".png", "照" * ((MAX_PART - 4) // 3) + ".png"),
    ],
)
def test_safe_parts(given: str, kept: str) -> None:
    assert safe_part(given) == kept
    assert len(kept.encode()) <= MAX_PART


@pytest.mark.parametrize("given", ["", "/", "..", "./..//.", "\u200b"])
def test_names_of_which_nothing_is_left(given: str) -> None:
    if given == "\u200b":
        assert safe_path(given) == "_"
        return
    with pytest.raises(BadName):
        safe_path(given)


def test_a_path_stays_below_its_folder() -> None:
    assert safe_path("../../etc/./passwd") == "etc/passwd"
    assert safe_path("C:\\temp\\a.txt") == "C_/temp/a.txt"
