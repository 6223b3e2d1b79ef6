"""The board's figures in the text format of Prometheus (0.0.4). Only what one look at the database shows: gauges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BREAKER = ("closed", "half_open", "open")

Samples = Sequence[tuple[Mapping[str, str], float]]


def exposition(queue: Mapping[str, Any], standing: Mapping[str, Any]) -> str:
    """queue: board.queue.depth.snapshot. standing: board.ops.standing."""
    lines: list[str] = []
    for name, what, samples in _figures(queue, standing):
        lines += [f"# HELP {name} {what}", f"# TYPE {name} gauge"]
        lines += [f"{name}{_labels(labels)} {value:.15g}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _figures(queue: Mapping[str, Any], standing: Mapping[str, Any]) -> Iterator[tuple[str, str, Samples]]:
    lanes, connections, types = queue["lanes"], standing["connections"], standing["types"]
    yield (
        "board_tasks",
        "Tasks that have not ended.",
        [({"status": status}, number) for status, number in queue["status"].items()],
    )
    for name, what in (
        ("ready", "Tasks that could begin now."),
        ("held", "Tasks kept back by limits."),
        ("later", "Tasks whose time has not come."),
    ):
        yield f"board_queue_{name}", what, [({"lane": it["lane"]}, it[name]) for it in lanes]
    waits = [({"lane": it["lane"]}, it["oldest_wait_seconds"] or 0) for it in lanes]
    yield "board_queue_oldest_wait_seconds", "How long the oldest ready task of a lane waits.", waits
    yield (
        "board_connection_breaker",
        "1 for the state in which the breaker of a connection is: open means that nothing is begun through it.",
        [
            ({"connection": it["name"], "state": state}, float(it["breaker"]["state"] == state))
            for it in connections
            for state in BREAKER
        ],
    )
    failures = [({"connection": it["name"]}, it["breaker"]["failures"]) for it in connections]
    yield "board_connection_failures", "Failures in a row.", failures
    running = [({"connection": it["name"]}, it["running"]) for it in connections]
    yield "board_connection_running", "Attempts that use a connection now.", running
    limited = [("connection", it) for it in connections] + [("type", it) for it in types]
    for name, part, value, what in (
        ("board_limit_concurrency", "concurrency", "limit", "How many may run at once."),
        ("board_limit_rate_free", "rate", "free", "How many more may start now by the rate."),
        ("board_limit_day", "per_day", "limit", "How many may start in a day."),
        ("board_limit_day_used", "per_day", "used", "How many have started today."),
    ):
        yield name, what, [({kind: it["name"]}, it[part][value]) for kind, it in limited if it[part]]
    yield (
        "board_limit_held",
        "Tasks that a limit keeps back.",
        [({kind: it["name"]}, it["held"]) for kind, it in limited],
    )
    yield "board_type_calls_today", "Calls of the work of a type today.", _of_types(types, "calls_today")
    yield "board_type_tokens_today", "Tokens of models that a type has used today.", _of_types(types, "tokens_today")
    budgets = [it for it in types if it["tokens_per_day"] is not None]
    yield "board_type_tokens_per_day", "Tokens that a type may use in a day.", _of_types(budgets, "tokens_per_day")


def _of_types(types: list[Mapping[str, Any]], name: str) -> Samples:
    return [({"type": it["name"]}, it[name]) for it in types]


def _labels(labels: Mapping[str, str]) -> str:
    escaped = {
        name: text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for name, text in labels.items()
    }
    return "{" + ",".join(f'{name}="{text}"' for name, text in escaped.items()) + "}"
