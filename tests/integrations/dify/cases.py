"""The case files: recorded streams and answers, with what must come out of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "data" / "cases"

SSE: dict[str, Any] = json.loads((FOLDER / "sse" / "expected.json").read_text("utf-8"))
HTTP_ERRORS: list[dict[str, Any]] = json.loads((FOLDER / "sse" / "http_errors.json").read_text("utf-8"))
AI: dict[str, Any] = json.loads((FOLDER / "ai" / "expected.json").read_text("utf-8"))["files"]

# The shape that ai/expected.json asks for, as a JSON Schema.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["decision", "score", "reason"],
    "properties": {
        "decision": {"enum": ["approve", "reject", "revise"]},
        "score": {"type": "number", "minimum": 0, "maximum": 1},
        "reason": {"type": "string"},
    },
}


def sse(name: str) -> bytes:
    return (FOLDER / "sse" / name).read_bytes()


def ai(name: str) -> str:
    return (FOLDER / "ai" / name).read_bytes().decode("utf-8")


def pieces(data: bytes, feed: dict[str, Any]) -> list[bytes]:
    """The bytes cut as `feed_in_chunks` says: `sizes`, the last one for the rest, or `every` so many."""
    sizes = feed.get("sizes") or [feed["every"]] * (len(data) // feed["every"] + 1)
    cut, start = [], 0
    for size in sizes:
        cut.append(data[start : start + size])
        start += size
    return [*cut, data[start:]]
