"""The report as a workbook: numbers that a spreadsheet can go on computing with, texts that it never computes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

from board.sheets.harmless import without_control

_MADE = datetime(2000, 1, 1, tzinfo=UTC)  # the same report gives the same bytes
Row = Sequence[Any]
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def workbook(document: dict[str, Any]) -> bytes:
    """An XLSX file. Times are seconds, shares 0 to 1; names are those of the API, so that formulas hold in any
    language."""
    from xlsxwriter import Workbook

    file = BytesIO()
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    book = Workbook(file, options)
    book.set_properties({"created": _MADE})
    bold = book.add_format({"bold": True})
    for name, head, rows in _sheets(document):
        sheet = book.add_worksheet(name)
        sheet.set_column(0, 0, 28)
        sheet.set_column(1, max(1, len(head) - 1), 14)
        sheet.freeze_panes(1, 0)
        for number, row in enumerate((head, *rows)):
            for column, value in enumerate(row):
                if value is None:
                    continue
                if isinstance(value, str):
                    sheet.write_string(number, column, without_control(value)[0], None if number else bold)
                else:
                    sheet.write_number(number, column, value)
    book.close()
    return file.getvalue()


def _sheets(it: dict[str, Any]) -> Iterable[tuple[str, Row, Sequence[Row]]]:
    about = [(name, str(it[name])) for name in ("week", "zone", "from", "to", "as_of", "frozen")]
    changes = it["change"]["headline"]
    headline = [
        (name, value, changes.get(name, {}).get("last"), changes.get(name, {}).get("difference"))
        for name, value in it["headline"].items()
    ]
    parts = [
        (f"{part}.{name}", value)
        for part in ("cancelled", "timed_out", "retries", "ageing", "unknown_outcomes", "review_health", "agreement")
        for name, value in it[part].items()
    ]
    rest = [("created", it["created"]), ("completion", it["completion"]), *parts]
    yield "Summary", ("figure", "this week", "last week", "difference"), [*headline, *rest, *about]
    counts = ("created", "done", "failed", "cancelled")
    yield "Days", ("day", *counts), [(day, *(on[n] for n in counts)) for day, on in zip(DAYS, it["days"], strict=True)]
    money = sorted({name for row in (*it["types"], *it["connections"]) for name in row["cost"]})
    yield (
        "Types",
        ("type", *counts, "runs", "run p50", "run p90", "tokens", *money),
        [
            (row["type"], *(row[n] for n in counts), *_spread(row["running"]), row["tokens"], *_money(row, money))
            for row in it["types"]
        ],
    )
    yield (
        "Connections",
        ("connection", "calls", "failed", "n", "p50", "p90", "tokens", *money),
        [
            (row["connection"], row["calls"], row["failed"], *_spread(row["time"]), row["tokens"], *_money(row, money))
            for row in it["connections"]
        ],
    )
    failures = [(row["cause"], row["n"], row["share"], row["example"]) for row in it["failures"]["causes"]]
    yield "Failures", ("cause", "tasks", "share", "example"), failures
    waits = [("all", *_spread(it["review_wait"]))]
    waits += [(row["type"], *_spread(row)) for row in it["review_wait"]["by_type"]]
    yield "Review waits", ("type", "n", "p50", "p90"), waits
    states = [(name, "over", *_spread(row)) for name, row in it["states"].items()]
    states += [(name, "still open", *_spread(row)) for name, row in it["open_states"].items()]
    yield "Time in state", ("status", "visits", "n", "p50", "p90"), states
    people = [(row["who"], row["decisions"], row["overridden"], row["approved_in_a_row"]) for row in it["people"]]
    yield "People", ("who", "decisions", "overridden", "approved in a row"), people


def _spread(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["n"], row["p50"], row["p90"]


def _money(row: dict[str, Any], currencies: Sequence[str]) -> list[float | None]:
    return [float(row["cost"][name]) if name in row["cost"] else None for name in currencies]
