"""What part of the inbox an address asks for: read from it leniently, and written into the links of its pages."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from board.review.filters import DUE, RISKS, Asked
from board.review.policy import Reason
from board.tasks.read import BadFilter

# What stands in the address of a list of reviews, and stays in those of the reviews that are opened from it.
NAMES = ("type", "risk", "reason", "due", "mine")
_MOST = 20  # values of one name
CHOICES = {"risk": RISKS, "reason": tuple(it.value for it in Reason), "due": DUE}


def asked_of(request: Request) -> Asked:
    """What an address does not say rightly, it does not say: an old link still opens."""
    values = {name: _several(request, name) for name in ("type", "risk", "reason")}
    risks = tuple(it for it in values["risk"] if it in RISKS)
    reasons = tuple(it for it in values["reason"] if it in set(Reason))
    due = request.query_params.get("due", "")
    asked = Asked(values["type"], risks, reasons, due, request.query_params.get("mine") == "1")
    try:
        asked.check()
    except BadFilter:
        return Asked(values["type"], risks, reasons, "", asked.mine)
    return asked


def state_of(asked: Asked) -> dict[str, Any]:
    """Only what narrows the list; the same for every address that asks for the same."""
    whole = {
        "type": list(asked.type),
        "risk": list(asked.risk),
        "reason": list(asked.reason),
        "due": asked.due,
        "mine": "1" if asked.mine else "",
    }
    return {name: value for name, value in whole.items() if value}


def without(state: dict[str, Any], name: str, value: str) -> dict[str, Any]:
    """The same list, but for one of its conditions."""
    kept = [it for it in state[name] if it != value] if isinstance(state[name], list) else []
    return {key: (kept if key == name else it) for key, it in state.items() if key != name or kept}


def _several(request: Request, name: str) -> tuple[str, ...]:
    """Repeated, or as a comma list."""
    parts = [part.strip()[:200] for text in request.query_params.getlist(name) for part in text.split(",")]
    return tuple(dict.fromkeys(part for part in parts if part))[:_MOST]
