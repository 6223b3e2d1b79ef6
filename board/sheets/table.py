"""A table in the one shape in which the board knows it: a header of distinct names, and rows of texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

# What one XLSX sheet holds; a CSV file that has more cannot be opened by those who use sheets.
MAX_ROWS = 1_048_576
MAX_COLUMNS = 16_384
MAX_CELLS = 5_000_000  # about 1 GB as texts in memory


class BadTable(Exception):
    """It cannot be read as a table; one plain sentence that says what to do."""


@dataclass(slots=True)
class Table:
    """What was read, and how.

    header: distinct names, none of them empty. rows: texts, each row as long as the header, none of them all empty.
    kind: csv or xlsx. encoding and delimiter: of a CSV file. sheet: the one that was read, of `sheets`. doubled: names
    that several columns have. blank_rows: how many rows without any text were left out. merged: ranges such as "B6:D6".
    formulas: how many cells hold one. problems: plain sentences about everything that a person should look at.
    """

    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    kind: str = "csv"
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    sheets: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    blank_rows: int = 0
    merged: list[str] = field(default_factory=list)
    formulas: int = 0
    problems: list[str] = field(default_factory=list)


def fill(table: Table, raw: Iterable[Sequence[str]]) -> None:
    """Take rows as they stand in the file: the first that is not empty is the header. Raises BadTable."""
    rows: list[list[str]] = []
    cells, first, short, first_short = 0, 0, 0, 0
    for number, row in enumerate(raw, 1):
        kept = _without_tail(row)
        if not kept:
            table.blank_rows += 1
            continue
        if rows and len(row) < len(rows[0]):
            short, first_short = short + 1, first_short or number
        if not rows:
            first = number
        rows.append(kept)
        cells += len(kept)
        if len(rows) > MAX_ROWS or cells > MAX_CELLS or len(kept) > MAX_COLUMNS:
            raise BadTable(
                f"The table is too large: at most {MAX_ROWS} rows, {MAX_COLUMNS} columns and {MAX_CELLS} cells are "
                "read. Split it."
            )
    if not rows:
        raise BadTable("The table is empty: there is no text in any cell.")
    width = max(len(row) for row in rows)
    if width * len(rows) > 2 * MAX_CELLS:
        raise BadTable(f"The table is too large: {len(rows)} rows of {width} columns. Split it.")
    table.header = _names(table, rows[0], width)
    table.rows = [row + [""] * (width - len(row)) for row in rows[1:]]
    if first > 1:
        table.problems.append(f"The header stands in row {first}; the rows above it are empty.")
    if short:
        table.problems.append(f"Rows shorter than the header: {short}, the first is row {first_short}.")


def _without_tail(row: Sequence[str]) -> list[str]:
    end = len(row)
    while end and not row[end - 1].strip():
        end -= 1
    return list(row[:end])


def _names(table: Table, header: list[str], width: int) -> list[str]:
    """A name that stands twice gets a number, a missing one is made: no column is ever lost."""
    given = [it.strip() for it in header] + [""] * (width - len(header))
    taken, names = {it for it in given if it}, []
    seen: set[str] = set()
    for column, name in enumerate(given, 1):
        if name and name not in seen:
            seen.add(name)
            names.append(name)
            continue
        base, start = (name, 2) if name else (f"column {column}", 1)
        made = next(it for n in count(start) if (it := f"{base} ({n})" if n > 1 else base) not in taken)
        taken.add(made)
        names.append(made)
        if not name:
            table.problems.append(f'Column {column} has no name; it is read as "{made}".')
        else:
            table.problems.append(f'Column {column} is called "{name}", as one before it; it is read as "{made}".')
            if name not in table.doubled:
                table.doubled.append(name)
    return names
