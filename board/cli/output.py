"""How commands answer: tables for people, JSON for programs, both on stdout; remarks go to stderr."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]


def print_json(value: Mapping[str, Any]) -> None:
    """Indented; times in RFC 3339, UTC. Lists are `{"data": [...]}`, as over HTTP."""
    print(json.dumps(value, ensure_ascii=False, indent=2, default=_plain))


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as they need, Chinese characters counted as two."""
    lines = [heads, *rows]
    widths = [max(_width(line[column]) for line in lines) for column in range(len(heads))]
    for line in lines:
        cells = (cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True))
        print("  ".join(cells).rstrip())


def remark(text: str) -> None:
    """Something a person should know that is not the answer: stdout stays fit for a pipe."""
    print(text, file=sys.stderr)


def day(moment: datetime) -> str:
    """A time for tables: `2026-11-30 14:55 UTC`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
