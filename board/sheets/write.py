"""Tables written: every value as the text that it is, and nothing that a program would compute."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from board.sheets.harmless import marked, without_control
from board.sheets.table import MAX_COLUMNS, MAX_ROWS, BadTable

MAX_CELL = 32_767  # UTF-16 units, which is how XLSX counts
CUT = " … [cut]"
# UTF-8 with a mark is what Excel takes for UTF-8; the others are for programs that ask for them.
WRITTEN = ("utf-8-sig", "utf-8", "gb18030")
_NOT_IN_NAMES = re.compile(r"[\[\]:*?/\\\x00-\x1f]")
_LONGEST_NAME = 31
_MADE = datetime(2000, 1, 1, tzinfo=UTC)  # the same table gives the same bytes


@dataclass(slots=True)
class Written:
    """control: how many characters were left out that no table can hold. cut: how many cells were too long for XLSX."""

    control: int = 0
    cut: int = 0

    def notes(self) -> list[str]:
        said = []
        if self.control:
            said.append(f"control characters left out: {self.control}")
        if self.cut:
            said.append(
                f"cells cut at {MAX_CELL} characters, which is all that XLSX holds: {self.cut}; CSV holds them whole"
            )
        return said


def write_csv(
    path: Path,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    encoding: str = WRITTEN[0],
    delimiter: str = ",",
) -> Written:
    """As RFC 4180 has it. encoding: one of WRITTEN, all of which hold every character."""
    done = Written()
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\r\n")
        for row in _chained(header, rows):
            writer.writerow([marked(_clean(cell, done)) for cell in row])
    return done


def write_xlsx(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]], *, name: str = "") -> Written:
    """One sheet of text cells. name: of the sheet, made to fit. Raises BadTable where it is too large for a sheet."""
    from xlsxwriter import Workbook

    done = Written()
    workbook = Workbook(str(path), {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    try:
        workbook.set_properties({"created": _MADE})
        sheet = workbook.add_worksheet(sheet_name(name))
        text, bold = workbook.add_format({"num_format": "@"}), workbook.add_format({"num_format": "@", "bold": True})
        if len(header) > MAX_COLUMNS:
            raise BadTable(f"A sheet has at most {MAX_COLUMNS} columns, and here are {len(header)}. Take CSV.")
        sheet.set_column(0, max(0, len(header) - 1), 18, text)
        sheet.freeze_panes(1, 0)
        for number, row in enumerate(_chained(header, rows)):
            if number >= MAX_ROWS:
                raise BadTable(f"A sheet has at most {MAX_ROWS} rows, and here are more. Take CSV.")
            for column, cell in enumerate(row):
                sheet.write_string(number, column, _cut(_clean(cell, done), done), text if number else bold)
    finally:
        workbook.close()
    return done


def sheet_name(text: str) -> str:
    """A name that Excel takes: at most 31 characters, none of []:*?/\\, no apostrophe at its ends, never empty."""
    name = _NOT_IN_NAMES.sub(" ", without_control(text)[0]).strip().strip("'").strip()
    while _units(name) > _LONGEST_NAME:
        name = name[:-1].rstrip().rstrip("'")
    return "Sheet1" if not name or name.lower() == "history" else name


def _chained(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[Sequence[str]]:
    yield header
    yield from rows


def _clean(text: str, done: Written) -> str:
    clean, left_out = without_control(text)
    done.control += left_out
    return clean


def _cut(text: str, done: Written) -> str:
    if len(text) * 2 <= MAX_CELL or _units(text) <= MAX_CELL:
        return text
    done.cut += 1
    short = text.encode("utf-16-le")[: 2 * (MAX_CELL - len(CUT))].decode("utf-16-le", "ignore")
    return short + CUT


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
