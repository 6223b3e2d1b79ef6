"""A sheet of an XLSX workbook as a table: values as texts, nothing computed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from board.sheets.scan_xlsx import DAMAGED, check_size, scan
from board.sheets.table import MAX_CELLS, BadTable, Table, fill

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

_EXACT = 10**15  # whole numbers from here on have lost digits in the spreadsheet already


def read_xlsx(path: Path, sheet: str | None = None) -> Table:
    """sheet: its name; without it the first. Raises BadTable."""
    check_size(path)
    workbook = _opened(path)
    table = Table(kind="xlsx", sheets=list(workbook.sheet_names))
    if sheet is not None and sheet not in table.sheets:
        raise BadTable(f'There is no sheet called "{sheet}"; there are {", ".join(table.sheets)}.'[:400])
    if not table.sheets:
        raise BadTable("The workbook has no sheets.")
    table.sheet = sheet or table.sheets[0]
    found = scan(path, table.sheet)
    if found.rows * found.columns > 2 * MAX_CELLS:
        raise BadTable(
            f"The table is too large: its cells span {found.rows} rows and {found.columns} columns. Remove what "
            "stands far away from the table."
        )
    loaded = _loaded(workbook, table.sheet)
    inexact = 0

    def texts() -> Iterator[list[str]]:
        nonlocal inexact
        for row in loaded.iter_rows():
            inexact += sum(isinstance(cell, float) and abs(cell) >= _EXACT for cell in row)
            yield [_text(cell) for cell in row]

    fill(table, texts())
    table.formulas = found.formulas
    table.merged = sorted(_range(*it) for it in loaded.merged_cell_ranges or ())
    table.blank_rows += max(0, found.last_row - _height(loaded))
    table.problems += _problems(table, inexact)
    return table


def _opened(path: Path) -> CalamineWorkbook:
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    try:
        return CalamineWorkbook.from_path(str(path))
    except PasswordError as error:
        raise BadTable("The workbook needs a password. Remove the password and upload it again.") from error
    except (CalamineError, OSError) as error:
        raise BadTable(DAMAGED) from error


def _loaded(workbook: CalamineWorkbook, sheet: str) -> CalamineSheet:
    from python_calamine import CalamineError

    try:
        return workbook.get_sheet_by_name(sheet)
    except CalamineError as error:
        raise BadTable(DAMAGED) from error


def _height(sheet: CalamineSheet) -> int:
    """Rows down to the last one that holds a value."""
    return sheet.end[0] + 1 if sheet.end is not None else 0


def _problems(table: Table, inexact: int) -> Iterator[str]:
    if len(table.sheets) > 1:
        yield f'Only the sheet "{table.sheet}" was read, of {len(table.sheets)}; the option sheet names another.'
    if table.merged:
        some = ", ".join(table.merged[:5]) + (" …" if len(table.merged) > 5 else "")
        yield f"Merged cells ({some}): the first cell of each range has the text, the others are empty."
    if table.formulas:
        yield f"Cells with a formula: {table.formulas}. The last result of each is read, and nothing is computed."
    if inexact:
        yield f"Numbers of 16 digits or more: {inexact}. Spreadsheets keep 15 digits; write such as texts."
    if table.blank_rows:
        yield f"Empty rows left out: {table.blank_rows}."


def _text(value: Any) -> str:
    """As a person would write it: whole numbers without a point, dates as ISO 8601."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else format(Decimal(repr(value)), "f")
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _range(first: tuple[int, int], last: tuple[int, int]) -> str:
    """Both as (row, column), from 0; as people write it: B6:D6."""
    return ":".join(f"{_letters(column)}{row + 1}" for row, column in (first, last))


def _letters(column: int) -> str:
    letters, left = "", column + 1
    while left:
        left, rest = divmod(left - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
