"""What a type may say to each kind of work on tables, checked when the type is applied."""

from __future__ import annotations

from board.ports import DELIMITERS, ENCODINGS, WRITTEN
from integrations.files.options import Choice, Option, Words

_READING = (Choice("encoding", ENCODINGS), Choice("delimiter", tuple(DELIMITERS)), Words("sheet", 31))

OPTIONS: dict[str, tuple[Option, ...]] = {
    "table.check": _READING,
    "table.convert": (
        *_READING,
        Choice("format", ("csv", "xlsx")),
        Choice("to_encoding", WRITTEN, default=WRITTEN[0]),
        Choice("to_delimiter", tuple(DELIMITERS), default="comma"),
    ),
}
