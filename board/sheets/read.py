"""Any table: judged by its content, not by its name."""

from __future__ import annotations

from pathlib import Path

from board.sheets.read_csv import read_csv
from board.sheets.read_xlsx import read_xlsx
from board.sheets.scan_xlsx import is_xlsx
from board.sheets.table import BadTable, Table

_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # OLE: XLS, and XLSX with a password


def read_table(
    path: Path, *, encoding: str | None = None, delimiter: str | None = None, sheet: str | None = None
) -> Table:
    """A CSV file or the sheet of an XLSX workbook. What is hostile may take all memory: call it in a child process.

    Raises BadTable.
    """
    with path.open("rb") as file:
        head = file.read(len(_OLD_OFFICE))
    if not head:
        raise BadTable("The file is empty.")
    if head == _OLD_OFFICE:
        raise BadTable("It is a workbook with a password, or an old one (XLS). Save it as XLSX without a password.")
    if is_xlsx(path):
        return read_xlsx(path, sheet)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        raise BadTable("It is a zip archive and no table. Unpack it, or save it as XLSX or CSV.")
    return read_csv(path, encoding, delimiter)
