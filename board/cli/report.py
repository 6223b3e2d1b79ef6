"""`board report`: the figures of a week."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from board.cli.context import opened
from board.cli.output import AsJson, print_json, print_table, remark
from board.reports.sheet import workbook
from board.reports.weekly import Reports
from board.reports.weeks import Week

FORMATS = (".json", ".xlsx")


def report(
    week: Annotated[str | None, typer.Option(help="Such as 2026-W48; left out, the last one that is over.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write it to a file: .json or .xlsx.")] = None,
    as_json: AsJson = False,
) -> None:
    """The report of a week, as its page and the API show it."""
    if out is not None and out.suffix.lower() not in FORMATS:
        raise typer.BadParameter(f"end the name with {' or '.join(FORMATS)}", param_hint="--out")
    with opened() as context:
        reports = Reports(context.db, context.settings.timezone, context.settings.report_titles)
        with context.db.read() as connection:
            wanted = reports.last_week(connection) if week is None else Week.read(week)
        document = reports.of(wanted)
    if out is not None:
        text = json.dumps(document, ensure_ascii=False, indent=2)
        out.write_bytes(workbook(document) if out.suffix.lower() == ".xlsx" else text.encode())
        remark(f"The report of {wanted} is in {out}.")
    elif as_json:
        print_json(document)
    else:
        before = document["change"]["headline"]
        rows = [(name, _told(it), _told(before.get(name, {}).get("last"))) for name, it in document["headline"].items()]
        print_table((document["week"], "THIS WEEK", "LAST WEEK"), rows)
        if not document["frozen"]:
            remark("The week is not over; these are its figures so far.")


def _told(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
