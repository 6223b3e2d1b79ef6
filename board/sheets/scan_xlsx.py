"""What stands in the XML of a sheet and is not told by its values; looked at piece by piece, before anything is loaded.

A workbook of a few kilobytes may unpack to gigabytes, and two cells far apart span a range of billions.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

from board.sheets.table import BadTable

MAX_UNPACKED = 1024**3  # bytes of all parts together
_SMALL_PART = 4 * 1024**2  # bytes; lists of sheets are a few kilobytes
_PIECE = 256 * 1024
_CELL = re.compile(r"([A-Z]{1,3})(\d{1,7})")
DAMAGED = "The workbook is damaged: it cannot be read."


@dataclass(slots=True)
class Scan:
    """rows, columns: of the range in which cells hold something. last_row: of what has been formatted, too."""

    rows: int = 0
    columns: int = 0
    last_row: int = 0
    formulas: int = 0


def is_xlsx(path: Path) -> bool:
    with path.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            return False
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise BadTable(DAMAGED) from error


def check_size(path: Path) -> None:
    """Before anything is unpacked. Raises BadTable."""
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(it.file_size for it in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise BadTable(DAMAGED) from error
    if unpacked > MAX_UNPACKED:
        raise BadTable(f"The workbook unpacks to more than {MAX_UNPACKED // 1024**2} MB. Split it.")


def scan(path: Path, sheet: str) -> Scan:
    """Raises BadTable."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _scanned(archive, _part(archive, sheet))
    except (zipfile.BadZipFile, expat.ExpatError, KeyError, OSError, ValueError, EOFError) as error:
        raise BadTable(DAMAGED) from error


def _part(archive: zipfile.ZipFile, sheet: str) -> str:
    """The name of the part that holds the sheet."""
    ids: dict[str, str] = {}
    targets: dict[str, str] = {}

    def sheets(tag: str, attributes: dict[str, str]) -> None:
        if _local(tag) == "sheet":
            ids[attributes["name"]] = next(value for name, value in attributes.items() if name.endswith(":id"))

    def relations(tag: str, attributes: dict[str, str]) -> None:
        if _local(tag) == "Relationship":
            targets[attributes["Id"]] = attributes["Target"]

    for name, begin in (("xl/workbook.xml", sheets), ("xl/_rels/workbook.xml.rels", relations)):
        if archive.getinfo(name).file_size > _SMALL_PART:
            raise BadTable(DAMAGED)
        _parse(archive, name, begin)
    return posixpath.normpath(posixpath.join("/xl", targets[ids[sheet]])).lstrip("/")


def _parse(archive: zipfile.ZipFile, part: str, begin: Callable[[str, dict[str, str]], None]) -> None:
    """begin: called with the name and attributes of each element."""
    parser = expat.ParserCreate()
    parser.StartElementHandler = begin
    parser.StartDoctypeDeclHandler = _no_doctype
    with archive.open(part) as file:
        while piece := file.read(_PIECE):
            parser.Parse(piece, False)
    parser.Parse(b"", True)


def _no_doctype(*_: object) -> None:
    raise BadTable(DAMAGED)  # no spreadsheet writes one, and entities are only made to do harm


def _scanned(archive: zipfile.ZipFile, part: str) -> Scan:
    found = Scan()
    row = column = 0

    def begin(tag: str, attributes: dict[str, str]) -> None:
        nonlocal row, column
        name = _local(tag)
        if name == "row":
            row, column = int(attributes.get("r", row + 1)), 0
            found.last_row = max(found.last_row, row)
        elif name == "c":
            place = _CELL.fullmatch(attributes.get("r", ""))
            column = _number(place[1]) if place else column + 1
            row = int(place[2]) if place else row
        elif name in ("v", "is"):
            found.rows, found.columns = max(found.rows, row), max(found.columns, column)
        elif name == "f":
            found.formulas += 1

    _parse(archive, part, begin)
    return found


def _number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def _local(tag: str) -> str:
    return tag.rpartition(":")[2]
