"""What the pages call whoever acts, and the ways by which they come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from board.web.language import Language
from board.web.wording.marks import N_

ROLE = {"owner": N_("Owner"), "operator": N_("Operator"), "reviewer": N_("Reviewer"), "viewer": N_("Viewer")}
ACTOR = {"worker": N_("Worker"), "timer": N_("Timer"), "system": N_("The board"), "key": N_("API key")}
CHANNEL = {
    "web": N_("page"),
    "api": N_("API"),
    "link": N_("link"),
    "cli": N_("command line"),
    "worker": N_("worker"),
    "timer": N_("timer"),
    "sweep": N_("rescue"),
    "dify": N_("Dify tool"),
    "mcp": N_("MCP"),
}


def said_also(language: Language, others: Sequence[str]) -> str:
    """Who else has a review open; empty where nobody has."""
    names = ", ".join(it.split(":", 1)[1] for it in others)
    return language.gettext("Also open: {names}").format(names=names) if others else ""


def said_held(language: Language, by: str, until: datetime, *, mine: bool) -> str:
    """Who has taken a review, and until when."""
    when = language.moment(until)
    if mine:
        return language.gettext("You have taken this until {when}.").format(when=when)
    return language.gettext("{who} has taken this until {when}.").format(who=by.split(":", 1)[1], when=when)
