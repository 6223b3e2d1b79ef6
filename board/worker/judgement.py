"""Reading the AI's judgement out of a result, by the paths that the type names."""

from __future__ import annotations

from typing import Any

from board.catalogue.spec import JudgementPaths
from board.ports import Json

VERDICTS = ("approve", "revise", "reject")


def at_path(value: Json, path: str) -> Json:
    """What stands at a dotted path such as `answer.scores.0`, or None."""
    for part in path.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def read(result: Json, paths: JudgementPaths) -> dict[str, Any] | None:
    """summary, advice, verdict, confidence, reasons, risks; None when the type names no path at all."""
    return normal({name: at_path(result, path) for name, path in paths.named.items()}) if paths.named else None


def normal(raw: dict[str, Any]) -> dict[str, Any]:
    """A judgement in the contract's shape, whatever a model wrote there."""
    verdict = str(raw.get("verdict") or "").strip().lower()
    return {
        "summary": _text(raw.get("summary")),
        "advice": _text(raw.get("advice")),
        "verdict": verdict if verdict in VERDICTS else None,
        "confidence": _confidence(raw.get("confidence")),
        "reasons": _list(raw.get("reasons")),
        "risks": _list(raw.get("risks")),
    }


def _text(value: Json) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


def _list(value: Json) -> list[str]:
    if value is None or value == "":
        return []
    items = value if isinstance(value, list) else [value]
    return [text for item in items if (text := _text(item)) and text.strip()]


def _confidence(value: Json) -> float | None:
    """0 to 1; anything else is no confidence at all, which counts as low."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None  # NaN is in no range
