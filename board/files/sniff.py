"""What a file is, judged by its first bytes: names and declared types lie."""

from __future__ import annotations

import codecs

HEAD_BYTES = 4096  # enough for every signature here, and for the first words of a text
UNKNOWN = "application/octet-stream"
TEXT = "text/plain"

# (offset, bytes, media type), the first that fits. From the formats' own specifications.
_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"\x1a\x45\xdf\xa3", "video/webm"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"PK\x05\x06", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"OggS", "audio/ogg"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"fLaC", "audio/flac"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
# Brands of ISO base media files (the four bytes after "ftyp").
_BRANDS = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"hevc": "image/heic",
    b"mif1": "image/heic",
    b"msf1": "image/heic",
    b"qt  ": "video/quicktime",
    b"M4A ": "audio/mp4",
}
# What office programs put first into their zip; it tells the kinds apart without unpacking anything.
_OFFICE = {
    b"xl/": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    b"word/": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    b"ppt/": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}
_MARKUP = ((b"<svg", "image/svg+xml"), (b"<!doctype html", "text/html"), (b"<html", "text/html"))


def media_type(head: bytes) -> str:
    """The media type of content that begins with `head` (HEAD_BYTES of it, or all)."""
    for offset, mark, name in _SIGNATURES:
        if head.startswith(mark, offset):
            return _zip_kind(head) if name == "application/zip" else name
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12], UNKNOWN)
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "video/mp4")
    return _text_kind(head)


def _zip_kind(head: bytes) -> str:
    if b"[Content_Types].xml" in head:
        return next((kind for mark, kind in _OFFICE.items() if mark in head), "application/zip")
    return "application/zip"


def _text_kind(head: bytes) -> str:
    if not head or b"\0" in head:
        return UNKNOWN
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1024].lower()
    for mark, name in _MARKUP:
        if mark in start:
            return name
    if start.startswith((b"{", b"[")):
        return "application/json"
    return TEXT if _reads_as_text(head) else UNKNOWN


def _reads_as_text(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the last character may be cut in two
    except UnicodeDecodeError:
        return False
    return not any(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
