"""`board doctor`: what is wrong, and what helps."""

from __future__ import annotations

from dataclasses import asdict

import typer

from board.cli.output import AsJson, print_json, print_table
from board.doctor import examine


def doctor(as_json: AsJson = False) -> None:
    """Check settings, data folder, database, schema, clock, key and Redis; exit code 1 when something is wrong."""
    findings = examine()
    good = all(it.status != "wrong" for it in findings)
    if as_json:
        print_json({"ok": good, "data": [asdict(it) for it in findings]})
    else:
        print_table(("WHAT", "STATUS", "FOUND"), [(it.what, it.status, it.message) for it in findings])
    if not good:
        raise typer.Exit(1)
