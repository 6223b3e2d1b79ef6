"""Reads the demo's data files: types and connections as YAML texts, tasks as request bodies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

import yaml

from board.ports import JsonObject

_DATA = files("integrations.demo") / "data"
_TASKS = "tasks.yaml"


def catalogue() -> list[str]:
    """The YAML texts in the order in which they must be applied: connections before the types that name them."""
    names = sorted(entry.name for entry in _DATA.iterdir() if entry.name.endswith(".yaml") and entry.name != _TASKS)
    return [(_DATA / name).read_text("utf-8") for name in names]


def tasks(now: datetime | None = None) -> list[JsonObject]:
    """Bodies of POST /tasks. `hours_ahead` in the file becomes `run_after`, counted from now (UTC)."""
    moment = now or datetime.now(UTC)
    bodies: list[dict[str, Any]] = yaml.safe_load((_DATA / _TASKS).read_text("utf-8"))
    return [_dated(body, moment) for body in bodies]


def _dated(body: JsonObject, moment: datetime) -> JsonObject:
    hours = body.pop("hours_ahead", None)
    if hours is None:
        return body
    return body | {"run_after": (moment + timedelta(hours=hours)).isoformat(timespec="seconds")}
