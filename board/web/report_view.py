"""How the figures of a report are said and drawn, on its page and in its mail."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from babel.dates import format_date

from board.web.language import Language
from board.web.wording.marks import label
from board.web.wording.reports import HEADLINE

TIMES, RATES = {"review_wait_p50"}, {"override_rate"}
SERIES = ("done", "failed", "cancelled")
WIDTH, HEIGHT, FOOT, HEAD, GAP = 700, 200, 24, 20, 24  # of the drawing, in its own units


def verdict(language: Language, document: dict[str, Any]) -> str:
    """The week in one line: also the subject of its mail."""
    head, oldest = document["headline"], document["waiting"]["oldest"]
    said = language.gettext("{week}: {done} done, {failed} failed").format(
        week=document["week"], done=language.number(head["done"]), failed=language.number(head["failed"])
    )
    if oldest:
        waits = language.gettext("oldest review {age}").format(age=language.span(oldest[0]["age"]))
        said = language.gettext("{first}, {second}").format(first=said, second=waits)
    return said


def figure(language: Language, name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if name in TIMES:
        return language.span(value)
    return language.percent(value) if name in RATES else language.number(value)


def headline(language: Language, document: dict[str, Any]) -> list[dict[str, Any]]:
    """Each figure of the headline with its label, its text, and how it has changed: arrow, word, better or not."""
    return [
        {
            "name": name,
            "label": label(language, HEADLINE, name),
            "text": figure(language, name, value),
            "value": value,
            "change": _change(language, name, document["change"]["headline"].get(name)),
        }
        for name, value in document["headline"].items()
    ]


def _change(language: Language, name: str, change: dict[str, Any] | None) -> dict[str, Any] | None:
    if change is None or change["difference"] is None:
        return None
    difference = change["difference"]
    if not difference:
        return {"arrow": "→", "text": language.gettext("as last week"), "better": None, "word": ""}
    amount = figure(language, name, abs(difference))
    pattern = language.gettext("{amount} more") if difference > 0 else language.gettext("{amount} less")
    text = pattern.format(amount=amount)
    if change["percent"] is not None:
        text += f" ({'+' if difference > 0 else '−'}{language.number(abs(change['percent']))}%)"
    word = language.gettext("better") if change["better"] else language.gettext("worse")
    return {"arrow": "↑" if difference > 0 else "↓", "text": text, "better": change["better"], "word": word}


def days(language: Language, document: dict[str, Any]) -> list[dict[str, Any]]:
    """The days of the week by name, with what ended on each."""
    monday = datetime.fromisoformat(document["from"]).astimezone(ZoneInfo(document["zone"])).date()
    return [
        it | {"name": format_date(monday + timedelta(days=number), "EEE d", locale=language.locale)}
        for number, it in enumerate(document["days"])
    ]


def chart(language: Language, document: dict[str, Any]) -> dict[str, Any]:
    """Stacked bars, one a day, as rectangles of an SVG of WIDTH by HEIGHT."""
    found = days(language, document)
    most = max((sum(it[name] for name in SERIES) for it in found), default=0) or 1
    step = WIDTH / 7
    bars = []
    for number, it in enumerate(found):
        top, parts = float(HEIGHT - FOOT), []
        for name in SERIES:
            height = (HEIGHT - FOOT - HEAD) * it[name] / most
            top -= height
            if it[name]:
                parts.append({"name": name, "y": round(top, 1), "height": round(height, 1), "n": it[name]})
        total = sum(it[name] for name in SERIES)
        bars.append(
            {
                "x": round(number * step + GAP / 2, 1),
                "middle": round((number + 0.5) * step, 1),
                "top": round(top - 5, 1),
            }
            | {"name": it["name"], "total": total, "parts": parts}
            | {name: it[name] for name in ("created", *SERIES)}
        )
    return {"width": WIDTH, "height": HEIGHT, "bar": round(step - GAP, 1), "foot": HEIGHT - 6, "bars": bars}
