"""The columns of `tasks` that a move writes by itself."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, or_

from board.tasks.models import tasks
from board.tasks.states import RANK_FIRST, RANK_USUAL, RULES, TERMINAL, Move, Phase, Pool


def written(move: Move, moment: ColumnElement[Any]) -> dict[str, Any]:
    """Values for an UPDATE. moment: the present time, as an expression."""
    rule = RULES[move]
    values: dict[str, Any] = {
        "status": rule.to,
        "version": tasks.c.version + 1,
        "event_seq": tasks.c.event_seq + 1,
        "updated_at": moment,
        "lease_owner": None,
        "lease_until": None,
        "held_by": None,
        "let_in": None,
        "reconciling": move is Move.RECONCILE,
        "finished_at": moment if rule.to in TERMINAL else None,
    }
    if rule.to in TERMINAL:
        late = tasks.c.deadline_at.is_not(None) & (tasks.c.deadline_at < moment)
        values |= {"hurry_at": None, "deadline_missed": or_(tasks.c.deadline_missed, late)}
    if rule.to_phase is not None:
        acting = rule.to_phase is Phase.ACT
        values |= {
            "phase": rule.to_phase,
            "pool": Pool.BOARD if acting else tasks.c.home_pool,
            "rank": RANK_FIRST if acting else RANK_USUAL,
        }
    return values
