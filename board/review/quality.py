"""How good the AI's suggestions are, as their reviewers judge: figures by type, from the decisions of a period.

The definitions, for every place that shows such figures:

- A decision counts when a person or an API key made it, not the clock, about an output that could be approved
  (SUGGESTED): not about a failure, an unknown outcome, a form, or a task that goes straight to a person.
- It counts for the time when it was made. What was undone is not decided.
- Overridden: approved with changes, sent back, or rejected.
- Agreed: the verdict is the one that the AI had proposed; of those where it had proposed one.
- Sampled: reviews that were opened by chance (`review.sample`). Disagreed: the overridden ones among them; its interval
  says what may be true of everything that was not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, case, func, or_, select

from board.proportions import share, wilson
from board.review.models import reviews
from board.review.policy import Reason
from board.tasks.models import tasks

SUGGESTED = (
    Reason.POLICY,
    Reason.SAMPLE,
    Reason.LOW_CONFIDENCE,
    Reason.RISK,
    Reason.OUTPUT_RULE,
    Reason.PARTIAL_RESULT,
    Reason.EMPTY_OUTPUT,
    Reason.INVALID_OUTPUT,
)
COUNTS = and_(
    reviews.c.status == "decided",
    reviews.c.reason.in_(SUGGESTED),
    reviews.c.decider_kind.in_(("person", "key")),
)
OVERRIDDEN = or_(reviews.c.verdict != "approve", reviews.c.edited)


@dataclass(frozen=True, slots=True)
class Quality:
    """Numbers of decisions, of one type or of several together. proposed: those where the AI had proposed a verdict."""

    decisions: int = 0
    edited: int = 0  # approved with changes
    revised: int = 0
    rejected: int = 0
    proposed: int = 0
    agreed: int = 0
    sampled: int = 0
    disagreed: int = 0

    def __add__(self, other: Quality) -> Quality:
        return Quality(*(getattr(self, it.name) + getattr(other, it.name) for it in fields(Quality)))

    @property
    def overridden(self) -> int:
        return self.edited + self.revised + self.rejected

    @property
    def override_rate(self) -> float | None:
        return share(self.overridden, self.decisions)

    @property
    def agreement(self) -> float | None:
        return share(self.agreed, self.proposed)

    @property
    def disagreed_rate(self) -> float | None:
        return share(self.disagreed, self.sampled)

    @property
    def disagreed_interval(self) -> tuple[float, float] | None:
        """Wilson's, of 95 %."""
        return wilson(self.disagreed, self.sampled)


def by_type(connection: Connection, since: datetime, until: datetime, types: Sequence[str] = ()) -> dict[str, Quality]:
    """The figures of each type on which anything was decided from `since` on and before `until`, by name.

    Read through the index on when reviews were decided: what it takes follows the decisions of the period only.
    """

    def number(condition: Any) -> Any:
        return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)

    sampled = reviews.c.reason == Reason.SAMPLE
    query = (
        select(
            tasks.c.type,
            func.count().label("decisions"),
            number(and_(reviews.c.verdict == "approve", reviews.c.edited)).label("edited"),
            number(reviews.c.verdict == "revise").label("revised"),
            number(reviews.c.verdict == "reject").label("rejected"),
            number(reviews.c.proposed.is_not(None)).label("proposed"),
            number(reviews.c.proposed == reviews.c.verdict).label("agreed"),
            number(sampled).label("sampled"),
            number(and_(sampled, OVERRIDDEN)).label("disagreed"),
        )
        .join(tasks, tasks.c.id == reviews.c.task)
        .where(COUNTS, reviews.c.decided_at >= since, reviews.c.decided_at < until)
        .group_by(tasks.c.type)
        .order_by(tasks.c.type)
    )
    if types:
        query = query.where(tasks.c.type.in_(types))
    found = connection.execute(query).mappings()
    return {row["type"]: Quality(**{it.name: int(row[it.name]) for it in fields(Quality)}) for row in found}


def together(figures: Iterable[Quality]) -> Quality:
    return sum(figures, Quality())


def document(quality: Quality) -> dict[str, Any]:
    """The figures on the wire; rates from 0 to 1, null where there is nothing to divide by."""
    low, high = quality.disagreed_interval or (None, None)
    return {
        **{it.name: getattr(quality, it.name) for it in fields(Quality)},
        "override_rate": quality.override_rate,
        "agreement": quality.agreement,
        "disagreed_rate": quality.disagreed_rate,
        "disagreed_low": low,
        "disagreed_high": high,
    }
