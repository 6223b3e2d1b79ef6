"""Every figure of a week, by its definition: what `docs/reports.md` explains, in one JSON document.

All of it comes from what is only ever added to: the events of tasks, their attempts, and their reviews. So the same
week gives the same figures whenever it is asked about, until its tasks are archived; that is why it is kept.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection

from board.proportions import wilson
from board.reports import deciding, flow, spending
from board.reports.figures import change, share
from board.reports.weeks import Window

ENOUGH_TO_RANK = 5  # ended tasks of a type, below which its rate of failure says nothing
# The headline, and whether more of it is better.
HEADLINE = {
    "done": True,
    "failed": False,
    "cancelled": False,
    "timed_out": False,
    "review_wait_p50": False,
    "override_rate": False,
}
NO_COUNTS = ("review_wait_p50", "override_rate")


def facts(connection: Connection, window: Window, *, titles: bool = True) -> dict[str, Any]:
    """The figures of one week or of what has passed of it. titles: whether titles of tasks may be in it.

    Times are seconds, shares 0 to 1. Without a comparison to the week before: see `compared`.
    """
    kinds = flow.kinds(connection, window)
    ended = flow.ended(connection, window)
    intake, intake_days = flow.created(connection, window)
    timed_out = flow.timed_out(connection, window, kinds)
    states, running = flow.stays(connection, window)
    decisions = deciding.made(connection, window)
    passed = deciding.auto_approved(connection, window)
    types, connections = spending.spent(connection, window)
    totals = ended.totals
    waits, overrides = deciding.waits(decisions), deciding.overrides(decisions)
    return {
        "headline": {
            **{name: totals[name] for name in flow.ENDS},
            "timed_out": timed_out["n"],
            "review_wait_p50": waits["p50"],
            "override_rate": overrides["rate"],
        },
        "created": sum(intake.values()),
        "completion": share(totals["done"], sum(totals.values())),
        "days": [
            {"created": made, **{name: counts[name] for name in flow.ENDS}}
            for made, counts in zip(intake_days, ended.by_day, strict=True)
        ],
        "cancelled": {name: ended.ways[name] for name in ("rejected", "expired", "dropped", "caller", "board")},
        "timed_out": timed_out,
        "failures": flow.failures(connection, ended),
        "failing_types": _failing(ended),
        "unknown_outcomes": deciding.unknown(connection, window, kinds),
        "waiting": deciding.waiting(connection, window, titles=titles),
        "review_wait": waits,
        "overrides": overrides,
        "agreement": deciding.agreement(decisions),
        "calibration": deciding.calibrated(connection, window, decisions, passed),
        "sampled": deciding.quality(decisions, passed),
        "review_health": deciding.health(decisions),
        "people": deciding.people(decisions),
        "retries": flow.retries(connection, window),
        "states": states,
        "open_states": flow.open_stays(connection, window),
        "ageing": flow.ageing(connection, window, kinds["aged"]),
        "sent_again_differently": kinds["duplicate"],
        "types": _types(ended, intake, running, types),
        "connections": [{"connection": name} | it for name, it in sorted(connections.items())],
    }


def compared(these: dict[str, Any], last: dict[str, Any] | None) -> dict[str, Any]:
    """The changes of the headline from last week's figures, of failures by cause too; empty without a last week."""
    if last is None:
        return {"headline": {}, "causes": {}}
    before = Counter({it["cause"]: it["n"] for it in last["failures"]["causes"]})
    found = {
        name: change(
            these["headline"][name], last["headline"][name], more_is_better=more, of_count=name not in NO_COUNTS
        )
        for name, more in HEADLINE.items()
    }
    causes = {
        it["cause"]: change(it["n"], before[it["cause"]], more_is_better=False) for it in these["failures"]["causes"]
    }
    return {
        "headline": {name: asdict(it) for name, it in found.items()},
        "causes": {name: asdict(it) for name, it in causes.items()},
    }


def _failing(ended: flow.Ended) -> list[dict[str, Any]]:
    """Types by how often they fail at least, with 95 % certainty: two of five do not beat ninety of three hundred."""
    found = []
    for name, counts in ended.by_type.items():
        n, failed = sum(counts.values()), counts["failed"]
        interval = wilson(failed, n)
        if n >= ENOUGH_TO_RANK and failed and interval is not None:
            found.append({"type": name, "n": n, "failed": failed, "rate": share(failed, n), "at_least": interval[0]})
    return sorted(found, key=lambda it: (-it["at_least"], it["type"]))


def _types(
    ended: flow.Ended, intake: Counter[str], running: dict[str, Any], spent: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    nothing = {"n": 0, "p50": None, "p90": None, "max": None}
    names = sorted({*ended.by_type, *intake, *running})
    return [
        {"type": name, "created": intake[name]}
        | {status: ended.by_type[name][status] if name in ended.by_type else 0 for status in flow.ENDS}
        | {"running": running.get(name, nothing)}
        | {"causes": [{"cause": cause, "n": n} for cause, n in ended.causes_by_type[name].most_common()]}
        | spent.get(name, {"tokens": 0, "cost": {}})
        for name in names
    ]
