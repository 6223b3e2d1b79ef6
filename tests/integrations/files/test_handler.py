"""File work through a real worker: what comes in, what comes out, and what is said of files that are bad."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from board.files.ledger import find
from integrations.files.catalogue import all_handlers
from tests.integrations.files.pdfs import pdf
from tests.rig.working import OpenWorking, WorkingBoard

CASES = Path(__file__).parents[2] / "data/cases"


def store(board: WorkingBoard, path: Path | str, name: str | None = None) -> dict[str, str]:
    source = CASES / path
    with board.board.files.spool() as spool:
        spool.write(source.read_bytes())
        spool.finish()
        return {"file": board.board.files.keep([(name or source.name, spool)], "key:n8n")[0]["file_id"]}


def content(board: WorkingBoard, file_id: str) -> bytes:
    with board.board.db.read() as connection:
        row = find(connection, file_id)
    assert row is not None
    return b"".join(board.board.files.storage.read(row["sha256"]))


@pytest.fixture
def board(working_sqlite: OpenWorking) -> WorkingBoard:
    return working_sqlite()


def thumbnails(board: WorkingBoard, **handler: Any) -> None:
    board.apply(types=[{"name": "trial", "handler": {"use": "image.thumbnail", "size": 64, **handler}}])


def test_a_thumbnail_from_end_to_end(working: OpenWorking) -> None:
    board = working()
    thumbnails(board)
    source = store(board, "images/d_exif6_gps.jpg", "照片.jpg")
    board.submit(payload={"photo": source, "other": store(board, "images/d_rgba.png")})
    board.wait("T-1", "done")
    [made] = board.data()["result"]["files"]
    assert made["name"] == "照片-64.jpg"
    assert (made["type"], made["width"], made["height"]) == ("image/jpeg", 43, 64)
    assert made["source"] == source["file"]
    assert made["notes"] == []
    image = Image.open(io.BytesIO(content(board, made["file_id"])))
    assert image.size == (43, 64)
    assert made["bytes"] == len(content(board, made["file_id"]))


@pytest.mark.parametrize(
    "payload",
    [
        lambda one, two: {"files": [one, two]},
        lambda one, two: {"file": [one, two]},
        lambda one, two: {"files": [one["file"], two["file"]]},
    ],
)
def test_several_files_of_one_task(board: WorkingBoard, payload: Any) -> None:
    thumbnails(board)
    one, two = store(board, "images/d_rgba.png"), store(board, "images/d_cmyk.jpg")
    board.submit(payload=payload(one, two))
    board.wait("T-1", "done")
    made = board.data()["result"]["files"]
    assert [it["source"] for it in made] == [one["file"], two["file"]]


def test_inputs_say_which_file(board: WorkingBoard) -> None:
    thumbnails(board, inputs={"file": "{{ payload.second }}"})
    second = store(board, "images/d_cmyk.jpg")
    board.submit(payload={"first": store(board, "images/d_rgba.png"), "second": second})
    board.wait("T-1", "done")
    assert [it["source"] for it in board.data()["result"]["files"]] == [second["file"]]


def test_some_bad_ask_a_person_and_keep_the_good(board: WorkingBoard) -> None:
    """B049."""
    thumbnails(board)
    names = ("images/d_trunc.jpg", "images/d_zero.png", "docs/d_ok.pdf", "images/d_rgba.png")
    board.submit(payload={"files": [store(board, name) for name in names]})
    board.wait("T-1", "needs_review")
    result = board.data()["result"]
    assert [it["name"] for it in result["files"]] == ["d_rgba-64.png"]
    words = {"d_trunc.jpg": "damaged", "d_zero.png": "empty", "d_ok.pdf": "PDF"}
    assert {it["name"] for it in result["failed"]} == set(words)
    assert all(words[it["name"]] in it["message"] for it in result["failed"])
    [review] = board.reviews()
    assert review["reason"] == "partial_result"


def test_all_bad_is_failed_at_once_with_the_reasons(board: WorkingBoard) -> None:
    thumbnails(board)
    board.submit(payload={"files": [store(board, "images/d_trunc.jpg"), store(board, "images/d_bomb_13000.png")]})
    task = board.wait("T-1", "failed")
    assert (task["error_class"], task["retry_count"]) == ("permanent", 0)
    assert "d_trunc.jpg: The picture is damaged" in task["last_error"]
    assert "BOARD_MAX_PIXELS" in task["last_error"]


def test_without_a_file_it_is_failed_in_words(board: WorkingBoard) -> None:
    thumbnails(board)
    board.submit(payload={"file": "photo.png"})
    assert "POST /files" in board.wait("T-1", "failed")["last_error"]


def test_what_was_made_before_is_found_and_not_made_again(board: WorkingBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    thumbnails(board)
    board.submit("T-1", payload=store(board, "images/d_rgba.png"))
    board.wait("T-1", "done")
    handler: Any = board.board.handlers["image.thumbnail"]
    monkeypatch.setattr(handler._pool, "run", None)
    board.submit("T-2", payload=store(board, "images/d_rgba.png"))  # another file of the same content
    board.wait("T-2", "done")
    first, second = (board.data(it)["result"]["files"][0] for it in ("T-1", "T-2"))
    assert first["file_id"] == second["file_id"]
    assert {**first, "source": ""} == {**second, "source": ""}


def test_other_options_make_another_file(board: WorkingBoard) -> None:
    source = store(board, "images/d_rgba.png")
    thumbnails(board)
    board.submit("T-1", payload=source)
    board.wait("T-1", "done")
    thumbnails(board, format="webp")
    board.submit("T-2", payload=source)
    board.wait("T-2", "done")
    assert [board.data(it)["result"]["files"][0]["type"] for it in ("T-1", "T-2")] == ["image/png", "image/webp"]


@pytest.mark.parametrize(
    ("handler", "sentence"),
    [
        ({"use": "image.thumbnail", "size": 0}, "size must be a whole number from 16 to 4096"),
        ({"use": "image.thumbnail", "size": True}, "size must be"),
        ({"use": "image.thumbnail", "format": "bmp"}, "format must be one of"),
        ({"use": "image.convert"}, "format is missing"),
        ({"use": "image.compress", "max_bytes": "small"}, "max_bytes must be a size"),
        ({"use": "image.compress"}, "max_bytes is missing"),
        ({"use": "image.watermark", "text": " "}, "text must be a text"),
        ({"use": "image.strip_metadata", "size": 3}, "size"),
    ],
)
def test_wrong_options_are_refused_with_the_type(board: WorkingBoard, handler: dict[str, Any], sentence: str) -> None:
    from board.catalogue.apply import BadCatalogue

    with pytest.raises(BadCatalogue, match=sentence):
        board.apply(types=[{"name": "trial", "handler": handler}])


def test_every_handler_says_its_options() -> None:
    assert {it.name: it.options for it in all_handlers()} == {  # type: ignore[attr-defined]
        "image.thumbnail": ("size", "format", "quality"),
        "image.compress": ("max_bytes", "format"),
        "image.convert": ("format", "quality"),
        "image.strip_metadata": (),
        "image.watermark": ("text", "position", "opacity", "format", "quality"),
        "document.text": ("encoding",),
        "document.preview": ("pages", "size", "format", "quality"),
        "table.check": ("encoding", "delimiter", "sheet"),
        "table.convert": ("encoding", "delimiter", "sheet", "format", "to_encoding", "to_delimiter"),
        "archive.package": ("name",),
        "file.put": (),
        "video.transcode": ("format", "size", "crf", "audio"),
        "video.thumbnail": ("at", "size", "format", "quality"),
    }


def test_a_document_gives_its_pages_as_pictures_and_finds_all_of_them_again(
    board: WorkingBoard, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    board.apply(types=[{"name": "trial", "handler": {"use": "document.preview", "pages": 3, "size": 64}}])
    source = store(board, pdf(tmp_path / "三页.pdf", ["one", "two", "three"]))
    board.submit("T-1", payload=source)
    board.wait("T-1", "done")
    made = board.data("T-1")["result"]["files"]
    assert [(it["name"], it["page"], it["pages"]) for it in made] == [(f"三页-{n}.jpg", n, 3) for n in (1, 2, 3)]
    handler: Any = board.board.handlers["document.preview"]
    monkeypatch.setattr(handler._pool, "run", None)
    board.submit("T-2", payload=source)
    board.wait("T-2", "done")
    assert board.data("T-2")["result"]["files"] == made


def test_the_text_of_good_documents_is_kept_beside_bad_ones(board: WorkingBoard) -> None:
    """B049."""
    board.apply(types=[{"name": "trial", "handler": {"use": "document.text"}}])
    names = ("docs/d_password.pdf", "docs/d_ok.pdf", "images/d_zero.png")
    board.submit(payload={"files": [store(board, name) for name in names]})
    board.wait("T-1", "needs_review")
    result = board.data()["result"]
    assert [(it["name"], it["text"].strip()) for it in result["files"]] == [("d_ok.txt", "control page D")]
    assert "needs a password" in result["failed"][0]["message"]
    assert "empty" in result["failed"][1]["message"]


def test_a_table_from_end_to_end(board: WorkingBoard) -> None:
    """B061."""
    board.apply(types=[{"name": "trial", "handler": {"use": "table.convert"}}])
    board.submit(payload={"file": store(board, "tables/d_mess.xlsx", "任务表.xlsx")["file"]})
    board.wait("T-1", "done")
    [made] = board.data()["result"]["files"]
    assert (made["name"], made["rows"], made["doubled"]) == ("任务表.csv", 7, ["ID"])
    assert "12345678901234567890" in content(board, made["file_id"]).decode("utf-8-sig")


def test_what_grows_beyond_the_limit_of_a_file_is_refused_in_words(
    board: WorkingBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.apply(types=[{"name": "trial", "handler": {"use": "table.convert"}}])
    source = store(board, "tables/d_gb18030.csv")
    monkeypatch.setattr(board.board.files, "max_file", 200)
    board.submit(payload=source)
    assert "BOARD_MAX_FILE" in board.wait("T-1", "failed")["last_error"]
