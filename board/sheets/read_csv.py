"""A CSV file as a table: encoding and delimiter are found, and told."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from board.sheets.decode import BadText, decode
from board.sheets.harmless import unmarked
from board.sheets.table import BadTable, Table, fill

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
MAX_BYTES = 256 * 1024**2  # it is read as a whole, because the encoding is known only at its end
MAX_CELL = 10_000_000  # characters; the library's own limit of 131,072 is less than a long answer of a model
_SAMPLE = 64 * 1024  # characters in which the delimiter is looked for
_SAMPLE_ROWS = 200
_TOLD = re.compile(r"sep=(.)\r?\n")  # Excel's own way to name it, as the first line


def read_csv(path: Path, encoding: str | None = None, delimiter: str | None = None) -> Table:
    """encoding: one of decode.ENCODINGS; delimiter: one character. Both are found where they are not given.

    Raises BadTable.
    """
    if path.stat().st_size > MAX_BYTES:
        raise BadTable(f"The table is larger than {MAX_BYTES // 1024**2} MB. Split it.")
    table = Table(kind="csv")
    try:
        text, table.encoding = decode(path.read_bytes(), encoding)
    except BadText as error:
        raise BadTable(str(error)) from error
    if text.lstrip()[:200].lower().startswith(("<!doctype html", "<html")):
        raise BadTable("It is a web page and no table, whatever its name says.")
    if told := _TOLD.match(text):
        text, delimiter = text[told.end() :], delimiter or told[1]
    table.delimiter = delimiter or _delimiter(text)
    taken_off = 0

    def cells(strict: bool) -> Iterator[list[str]]:
        nonlocal taken_off
        for row in _records(text, table.delimiter or ",", strict):
            plain = [unmarked(cell) for cell in row]
            taken_off += sum(a != b for a, b in zip(row, plain, strict=True))
            yield plain

    try:
        fill(table, cells(strict=True))
    except csv.Error as error:
        if "unexpected end" in str(error):
            raise BadTable("A quotation mark is opened and never closed: the end of the table is missing.") from error
        table, taken_off = Table(kind="csv", encoding=table.encoding, delimiter=table.delimiter), 0
        fill(table, cells(strict=False))
        table.problems.append("Quotation marks stand where they should be doubled; look at the texts around them.")
    if taken_off:
        table.problems.append(f"Texts with a mark (') in front that keeps them texts: {taken_off}. It was taken off.")
    if table.blank_rows:
        table.problems.append(f"Empty rows left out: {table.blank_rows}.")
    return table


def _records(text: str, delimiter: str, strict: bool) -> Iterator[list[str]]:
    csv.field_size_limit(MAX_CELL)
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict)


def _delimiter(text: str) -> str:
    """That by which most rows have as many cells as each other, and more than one. A comma where none has."""
    sample, cut = text[:_SAMPLE], len(text) > _SAMPLE
    best, best_score = ",", (0.0, 0)
    for delimiter in DELIMITERS.values():
        try:
            rows = [row for row in islice(_records(sample, delimiter, strict=False), _SAMPLE_ROWS) if any(row)]
        except csv.Error:
            continue
        widths = Counter(len(row) for row in (rows[:-1] if cut and len(rows) > 1 else rows))
        if not widths:
            continue
        width, rows_of_it = widths.most_common(1)[0]
        score = (rows_of_it / widths.total(), width) if width > 1 else (0.0, 0)
        if score > best_score:
            best, best_score = delimiter, score
    return best
