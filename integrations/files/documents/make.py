"""What is done to documents, each in a child process: a file in, files out, and what there is to say about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from board.ports import BadText, decode
from integrations.files.bad_file import BadFile
from integrations.files.documents.pdf import is_pdf, open_pdf

TEXT_SHOWN = 20_000  # characters in a task's result; the kept file has all of them
MAX_TEXT = 20_000_000  # characters in the kept file: forty long novels
MAX_TEXT_FILE = 64 * 1024**2  # bytes of a plain text that is read
_PAGE_END = "\f"  # as pdftotext and its like do it
# What no text needs and databases refuse: control characters but tab, line ends and the end of a page, and the two
# non-characters that PDFium writes for a soft hyphen.
_CONTROL = dict.fromkeys([*(it for it in range(32) if it not in (9, 10, 12)), 127, 0xFFFE, 0xFFFF])


def text(source: str, folder: str, max_pixels: int, options: dict[str, Any]) -> dict[str, Any]:
    """All text of a PDF, or of a plain text in whatever encoding, as UTF-8."""
    notes: list[str] = []
    facts: dict[str, Any] = {}
    if is_pdf(source):
        pages = open_pdf(source)
        facts["pages"] = len(pages)
        whole = _PAGE_END.join(_bounded(_page_texts(pages, notes), notes))
        if not whole.strip():
            notes.append("there is no text in it: its pages are pictures, such as a scanner makes")
    else:
        whole = _plain(source, options.get("encoding"), facts)
    whole = whole.replace("\r\n", "\n").replace("\r", "\n").translate(_CONTROL)
    path = Path(folder) / "text.txt"
    path.write_bytes(whole.encode("utf-8", "replace"))
    if len(whole) > TEXT_SHOWN:
        notes.append(f"text has the first {TEXT_SHOWN} of {len(whole)} characters; the file has all of them")
    shown = whole[:TEXT_SHOWN].encode("utf-8", "replace").decode()
    return {
        "path": str(path),
        "suffix": "",
        "ending": ".txt",
        **facts,
        "text": shown,
        "characters": len(whole),
        "notes": notes,
    }


def preview(source: str, folder: str, max_pixels: int, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Pictures of the first `pages` pages; the longer side of each is `size` pixels."""
    from integrations.files.images.save import Frames, ending, save

    size, format = int(options["size"]), str(options["format"])
    if size * size > max_pixels:
        raise BadFile(f"size {size} may give more than the {max_pixels} pixels that are allowed (BOARD_MAX_PIXELS).")
    document = open_pdf(source)
    made = []
    for number in range(min(int(options["pages"]), len(document))):
        notes: list[str] = []
        picture = Frames([_drawn(document, number, size)])
        path = Path(folder) / f"page-{number + 1}{ending(format)}"
        save(picture, format, path, options.get("quality"), notes)
        width, height = picture.size
        facts = {"page": number + 1, "pages": len(document), "width": width, "height": height, "notes": notes}
        made.append({"path": str(path), "suffix": f"-{number + 1}", "ending": ending(format), **facts})
    return made


def _page_texts(document: Any, notes: list[str]) -> Iterator[str]:
    from pypdfium2 import PdfiumError

    for number in range(len(document)):
        try:
            page = document[number]
            yield page.get_textpage().get_text_bounded()
            page.close()
        except PdfiumError as error:
            raise BadFile(f"The document is damaged: page {number + 1} cannot be read.") from error


def _bounded(pages: Iterator[str], notes: list[str]) -> Iterator[str]:
    left = MAX_TEXT
    for number, page in enumerate(pages):
        if len(page) > left:
            notes.append(f"the text was cut on page {number + 1}, after {MAX_TEXT} characters")
            yield page[:left]
            return
        left -= len(page)
        yield page


def _drawn(document: Any, number: int, size: int) -> Any:
    from pypdfium2 import PdfiumError

    try:
        page = document[number]
        width, height = page.get_size()
        if not 0 < max(width, height) < float("inf"):
            raise BadFile(f"The document is damaged: page {number + 1} has no size.")
        picture = page.render(scale=size / max(width, height)).to_pil().convert("RGB")
        page.close()
    except PdfiumError as error:
        raise BadFile(f"The document is damaged: page {number + 1} cannot be drawn.") from error
    picture.thumbnail((size, size))  # PDFium rounds up
    return picture


def _plain(source: str, encoding: str | None, facts: dict[str, Any]) -> str:
    if Path(source).stat().st_size > MAX_TEXT_FILE:
        raise BadFile(f"The text is larger than {MAX_TEXT_FILE // 1024**2} MB. Split it.")
    try:
        whole, facts["encoding"] = decode(Path(source).read_bytes(), encoding)
    except BadText as error:
        raise BadFile(f"It is neither a PDF document nor a plain text. {error}") from error
    return whole


MAKERS: dict[str, Callable[[str, str, int, dict[str, Any]], Any]] = {
    "document.text": text,
    "document.preview": preview,
}
