"""Who else has a review open, and who has taken it, as its page says it."""

from __future__ import annotations

from typing import Any

from board.db.clock import read_now
from board.review import presence
from board.review.verdict import holder
from board.web.visit import Visit
from board.web.wording.people import said_also, said_held


def attendance(visit: Visit, connection: Any, row: Any) -> dict[str, Any]:
    """row: of a review. also, held: in words, empty where there is nothing to say. left: the seconds for which this
    reader still keeps it."""
    by = holder(connection, row) if row["status"] == "open" else None
    mine = by == visit.actor.identity
    others = presence.others(connection, row["id"], visit.actor)
    return {
        "also": said_also(visit.language, others),
        "held": said_held(visit.language, by, row["claimed_until"], mine=mine) if by else "",
        "left": int((row["claimed_until"] - read_now(connection)).total_seconds()) if mine else 0,
    }
