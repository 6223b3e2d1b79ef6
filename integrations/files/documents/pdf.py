"""A PDF document, opened with care. PDFium does the parsing, in a child process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from integrations.files.bad_file import BadFile, NeedsPassword

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

MAX_PAGES = 5_000  # a thousand pages of text take about ten seconds
_HEAD = 1024  # bytes among which "%PDF-" may stand, as all readers allow
_PASSWORD, _SECURITY = 4, 5  # FPDF_ERR_PASSWORD and FPDF_ERR_SECURITY of PDFium


def is_pdf(path: str) -> bool:
    """Judged by content. Raises BadFile for an empty file."""
    with Path(path).open("rb") as file:
        head = file.read(_HEAD)
    if not head:
        raise BadFile("The file is empty.")
    return b"%PDF-" in head


def open_pdf(path: str) -> PdfDocument:
    """Raises BadFile."""
    from pypdfium2 import PdfDocument, PdfiumError  # here: only children load it

    if not is_pdf(path):
        raise BadFile("It is no PDF document, whatever its name says.")
    try:
        document = PdfDocument(path)
        pages = len(document)
    except PdfiumError as error:
        if getattr(error, "err_code", None) in (_PASSWORD, _SECURITY):
            raise NeedsPassword("The document needs a password. Remove the password and upload it again.") from error
        raise BadFile("The document is damaged: it cannot be opened.") from error
    if pages == 0:
        raise BadFile("The document is empty: it has no pages.")
    if pages > MAX_PAGES:
        raise BadFile(f"The document has {pages} pages; at most {MAX_PAGES} are worked on. Split it.")
    return document
