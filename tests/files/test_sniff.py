"""What a file is, is judged by its content: B053, endings lie."""

from __future__ import annotations

import io
import zipfile

import pytest
from PIL import Image

from board.files.sniff import UNKNOWN, media_type


def picture(format: str, **more: object) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(out, format, **more)
    return out.getvalue()


def zipped(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as package:
        for name in names:
            package.writestr(name, "x")
    return out.getvalue()


@pytest.mark.parametrize("format", ["JPEG", "PNG", "GIF", "TIFF", "WEBP", "AVIF"])
def test_pictures(format: str) -> None:
    assert media_type(picture(format)) == f"image/{format.lower()}"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"%PDF-1.7\n", "application/pdf"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "image/heic"),
        (b"\0\0\0\x18ftypisom\0\0\x02\0isom", "video/mp4"),
        (b"\0\0\0\x14ftypqt  \0\0\0\0", "video/quicktime"),
        (b"\x1a\x45\xdf\xa3\x9f", "video/webm"),
        (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav"),
        (b"RIFF\0\0\0\0what", UNKNOWN),
        (zipped("a.txt"), "application/zip"),
        (
            zipped("[Content_Types].xml", "xl/workbook.xml"),
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ),
        (
            zipped("[Content_Types].xml", "word/document.xml"),
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
        (b"", UNKNOWN),
        (b"\0\1\2", UNKNOWN),
        (b"\xff\xfe\xfd\xfc\xfb\xfa", UNKNOWN),
        ("名称,数量\n苹果,3\n".encode(), "text/plain"),
        ("名称".encode() * 2000, "text/plain"),
        (b'\xef\xbb\xbf {"a": 1}', "application/json"),
        (b"  <!DOCTYPE html><script>alert(1)</script>", "text/html"),
        (b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', "image/svg+xml"),
        (b"<!-- " + b"x" * 500 + b" --><SVG onload=alert(1)>", "image/svg+xml"),
    ],
)
def test_content(head: bytes, kind: str) -> None:
    assert media_type(head[:4096]) == kind
