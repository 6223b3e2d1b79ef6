"""What a message says: one thing plainly, several as a count and the first of them. In the language of its route."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from board.locale import translations
from board.notices.kinds import OF_REVIEWS, Kind, Row
from board.ports import Message

SHOWN = 12  # things named in one message; more is read on the page
MOST_TITLE = 120  # characters of a task's title
NAME = "AI Task Board"  # in every title: robots with keywords ask for it


def N_(text: str) -> str:
    return text


KINDS = {
    Kind.P0_ARRIVED: N_("Urgent task arrived"),
    Kind.REVIEW_ASKED: N_("Review asked"),
    Kind.REVIEW_REMINDER: N_("Review due soon"),
    Kind.REVIEW_OVERDUE: N_("Review overdue"),
    Kind.FAILED: N_("Task failed"),
    Kind.UNKNOWN_OUTCOME: N_("Outcome unknown"),
    Kind.DEADLINE_MISSED: N_("Deadline missed"),
    Kind.MENTION: N_("You were mentioned"),
    Kind.ALERT: N_("Alert"),
    Kind.DIGEST: N_("Failed tasks of the day"),
}


def compose(message: str, rows: Sequence[Row], route: Row, public_url: str, link: str | None = None) -> Message:
    """rows: of `notices`, at least one, in their order. link: where it leads in place of its usual page."""
    words = translations(route["lang"])
    _ = words.gettext
    counted = Counter(row["kind"] for row in rows)
    if len(rows) == 1:
        title = _headline(rows[0], _)
    else:
        parts = [f"{_(KINDS[Kind(kind)])} × {number}" for kind, number in counted.most_common()]
        title = ", ".join(parts)
    lines = [line for row in rows[:SHOWN] for line in _lines(row, _, alone=len(rows) == 1)]
    if (left := len(rows) - SHOWN) > 0:
        lines.append(_("… and %(num)s more.") % {"num": left})
    path, label = _link(rows, _)
    return Message(
        id=message,
        title=f"{NAME}: {title}",
        text="\n".join(lines),
        link=link or public_url.rstrip("/") + path,
        label=label,
        to=route["address"],
        event="queue.alert" if set(counted) == {Kind.ALERT} else "notice",
        data={"notices": [_data(row) for row in rows[:200]], "count": len(rows)},
    )


def _headline(row: Row, _: Any) -> str:
    data = row["data"]
    if row["kind"] == Kind.ALERT:
        return f"{_('Over') if data['state'] == 'closed' else _(KINDS[Kind.ALERT])}: {_(TITLES[data['rule']])}"
    label = _(KINDS[Kind(row["kind"])])
    if row["kind"] == Kind.DIGEST:
        return f"{label}: {data['new']}"
    return f"{label}: {_short(data.get('title') or row['task_id'] or '')}"


def _lines(row: Row, _: Any, *, alone: bool) -> list[str]:
    data = row["data"]
    if row["kind"] == Kind.ALERT:
        return _of_alert(data, _)
    if row["kind"] == Kind.DIGEST:
        lines = [_("Failed since yesterday: %(new)s. Failed and not put back in all: %(all)s.") % data]
        lines += [f"{it['number']} × {it['type']}: {it['cause']}" for it in data["causes"]]
        return [*lines, _("Look at them on the page, and put back what should run again.")]
    shown = [f"{_(KINDS[Kind(row['kind'])])}: {_short(data.get('title') or '')} ({row['task_id']}, {data['type']})"]
    if alone and data.get("error"):
        shown.append(_short(data["error"], 500))
    return shown


def _of_alert(data: Mapping[str, Any], _: Any) -> list[str]:
    scope = f" ({data['scope']})" if data["scope"] else ""
    title = _(TITLES[data["rule"]]) + scope
    if data["state"] == "closed":
        return [_("%(title)s: it is over.") % {"title": title}]
    values = {"title": title, "value": f"{data['value']:g}", "threshold": f"{data['threshold']:g}"}
    return [_("%(title)s: %(value)s, and %(threshold)s are the limit.") % values]


# The title of each rule of board.notices.rules.
TITLES = {
    "queue_depth": N_("Many tasks wait"),
    "oldest_ready": N_("A task waits long (seconds)"),
    "failed_rate": N_("Many tasks fail"),
    "no_claim": N_("Work waits and nothing takes it (seconds)"),
    "worker_silent": N_("A worker is silent (seconds)"),
    "unknown_outcomes": N_("Outcomes are unknown"),
    "reviews_overdue": N_("Reviews are overdue"),
    "disk_low": N_("The disk is nearly full (percent used)"),
    "circuit_open": N_("A connection is shut because it fails"),
    "clock_off": N_("The clock is off (seconds)"),
}


def _link(rows: Sequence[Row], _: Any) -> tuple[str, str]:
    kinds = {row["kind"] for row in rows}
    first = rows[0]
    if len(rows) == 1 and first["task_id"]:
        if first["kind"] in OF_REVIEWS and first["data"].get("review"):
            return f"/reviews/{first['data']['review']}", _("Open the review")
        return f"/tasks/{quote(first['task_id'], safe='')}", _("Open the task")
    if kinds <= {Kind.FAILED, Kind.DIGEST}:
        return "/tasks?status=failed", _("Show the failed tasks")
    if kinds == {Kind.ALERT}:
        return "/ops", _("Show the load")
    return "/", _("Open the board")


def _data(row: Row) -> dict[str, Any]:
    return {"kind": row["kind"], "task_id": row["task_id"], **row["data"]}


def _short(text: str, most: int = MOST_TITLE) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
