"""All files of a task in one zip."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest

from integrations.files.archive import handler as package
from integrations.files.archive.names import MAX_BYTES, distinct
from tests.integrations.files.test_handler import CASES, content, store
from tests.rig.working import OpenWorking, WorkingBoard


@pytest.fixture
def board(working_sqlite: OpenWorking) -> WorkingBoard:
    board = working_sqlite()
    board.apply(types=[{"name": "trial", "handler": {"use": "archive.package", "name": "照片"}}])
    return board


def opened(board: WorkingBoard, file_id: str) -> zipfile.ZipFile:
    archive = zipfile.ZipFile(io.BytesIO(content(board, file_id)))
    assert archive.testzip() is None
    return archive


def test_all_files_of_the_payload_under_names_of_their_own(board: WorkingBoard) -> None:
    names = {"images/d_rgba.png": "图.png", "images/d_cmyk.jpg": "图.PNG", "docs/d_ok.pdf": "../a:b?.pdf"}
    files = [store(board, path, name) for path, name in names.items()]
    board.submit(payload={"photos": files[:2], "deep": {"letter": files[2]}, "again": files[0]})
    board.wait("T-1", "done")
    [made] = board.data()["result"]["files"]
    assert (made["name"], made["type"]) == ("照片.zip", "application/zip")
    archive = opened(board, made["file_id"])
    assert archive.namelist() == ["图.png", "图 (2).PNG", "a_b_.pdf"]
    assert [archive.read(it) for it in archive.namelist()] == [(CASES / it).read_bytes() for it in names]
    assert [(it["name"], it["source"]) for it in made["entries"]] == [
        (name, file["file"]) for name, file in zip(archive.namelist(), files, strict=True)
    ]


def test_inputs_say_which(board: WorkingBoard) -> None:
    board.apply(
        types=[{"name": "trial", "handler": {"use": "archive.package", "inputs": {"files": ["{{ payload.b }}"]}}}]
    )
    one, two = store(board, "images/d_rgba.png"), store(board, "images/d_cmyk.jpg")
    board.submit(payload={"a": one, "b": two["file"]})
    board.wait("T-1", "done")
    [made] = board.data()["result"]["files"]
    assert (made["name"], [it["source"] for it in made["entries"]]) == ("files.zip", [two["file"]])


def test_the_same_again_is_found_and_not_made(board: WorkingBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    payload = {"files": [store(board, "images/d_rgba.png"), store(board, "docs/d_ok.pdf")]}
    board.submit("T-1", payload=payload)
    board.wait("T-1", "done")
    handler: Any = board.board.handlers["archive.package"]
    monkeypatch.setattr(handler._pool, "run", None)
    board.submit("T-2", payload=payload)
    board.wait("T-2", "done")
    assert board.data("T-1")["result"] == board.data("T-2")["result"]


def test_too_many_and_too_much_are_refused_in_words(board: WorkingBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    payload = {"files": [store(board, "images/d_rgba.png"), store(board, "docs/d_ok.pdf")]}
    monkeypatch.setattr(board.board.files, "max_file", 600)
    board.submit("T-1", payload=payload)
    assert "BOARD_MAX_FILE" in board.wait("T-1", "failed")["last_error"]
    monkeypatch.setattr(package, "MAX_FILES", 1)
    board.submit("T-2", payload=payload)
    assert "names 2 files; at most 1" in board.wait("T-2", "failed")["last_error"]
    board.submit("T-3", payload={"text": "no file"})
    assert "POST /files" in board.wait("T-3", "failed")["last_error"]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (["a.jpg", "a.jpg", "a.jpg"], ["a.jpg", "a (2).jpg", "a (3).jpg"]),
        (["a.jpg", "a (2).jpg", "a.jpg"], ["a.jpg", "a (2).jpg", "a (3).jpg"]),
        (["A.JPG", "a.jpg"], ["A.JPG", "a (2).jpg"]),
        (["é", "e\u0301"], ["é", "é (2)"]),
        (["../../etc/passwd", "a\\b", "c:d"], ["_.._etc_passwd", "a_b", "c_d"]),
        (["CON", "nul.txt", "console.txt"], ["_CON", "_nul.txt", "console.txt"]),
        (["...", "", ".hidden", "dot."], ["file", "file (2)", "hidden", "dot"]),
        (["字" * 90 + ".jpg"], ["字" * 78 + ".jpg"]),
    ],
)
def test_names_are_safe_and_distinct(given: list[str], made: list[str]) -> None:
    assert distinct(given) == made
    assert all(len(it.encode()) <= MAX_BYTES for it in made)
