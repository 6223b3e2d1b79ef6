"""What is done to tables, each in a child process: a file in, a file out, and what there is to say about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from board.ports import DELIMITERS, BadTable, Table, read_table, write_csv, write_xlsx
from integrations.files.bad_file import BadFile

# How much of a report a task's result shows; the kept file has all of it.
_NAMES_SHOWN = 100
_NAME_SHOWN = 200  # characters
_SENTENCES_SHOWN = 50


def check(source: str, folder: str, max_pixels: int, options: dict[str, Any]) -> dict[str, Any]:
    """A report: how it was read, what it holds, and what a person should look at."""
    report = _report(_read(source, options))
    path = Path(folder) / "check.json"
    path.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    return {"path": str(path), "suffix": "-check", "ending": ".json", **_bounded(report), "notes": []}


def convert(source: str, folder: str, max_pixels: int, options: dict[str, Any]) -> dict[str, Any]:
    """The same values as texts in the other format, or in the one that was asked for."""
    table = _read(source, options)
    format = options.get("format") or ("csv" if table.kind == "xlsx" else "xlsx")
    path = Path(folder) / f"made.{format}"
    try:
        if format == "csv":
            delimiter = DELIMITERS[options["to_delimiter"]]
            done = write_csv(path, table.header, table.rows, encoding=options["to_encoding"], delimiter=delimiter)
        else:
            done = write_xlsx(path, table.header, table.rows, name=table.sheet or "")
    except BadTable as error:
        raise BadFile(str(error)) from error
    report = _bounded(_report(table))
    return {"path": str(path), "suffix": "", "ending": f".{format}", **report, "notes": done.notes()}


def _read(source: str, options: dict[str, Any]) -> Table:
    delimiter = options.get("delimiter")
    try:
        return read_table(
            Path(source),
            encoding=options.get("encoding"),
            delimiter=DELIMITERS[delimiter] if delimiter else None,
            sheet=options.get("sheet"),
        )
    except BadTable as error:
        raise BadFile(str(error)) from error


def _report(table: Table) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "kind": table.kind,
        "encoding": table.encoding,
        "delimiter": table.delimiter,
        "sheet": table.sheet,
        "sheets": table.sheets,
        "header": table.header,
        "rows": len(table.rows),
        "columns": len(table.header),
        "doubled": table.doubled,
        "merged": table.merged,
        "formulas": table.formulas,
        "blank_rows": table.blank_rows,
        "problems": table.problems,
    }
    other = ("sheet", "sheets", "merged", "formulas") if table.kind == "csv" else ("encoding", "delimiter")
    return {name: value for name, value in whole.items() if name not in other}


def _bounded(report: dict[str, Any]) -> dict[str, Any]:
    shown = dict(report)
    for name, most in (("header", _NAMES_SHOWN), ("sheets", _NAMES_SHOWN), ("doubled", _NAMES_SHOWN)):
        if name in shown:
            shown[name] = [it[:_NAME_SHOWN] for it in shown[name][:most]]
    for name in ("merged", "problems"):
        if name in shown:
            shown[name] = [it[: 2 * _NAME_SHOWN] for it in shown[name][:_SENTENCES_SHOWN]]
    return shown


MAKERS: dict[str, Callable[[str, str, int, dict[str, Any]], dict[str, Any]]] = {
    "table.check": check,
    "table.convert": convert,
}
