"""What people decided in one week, how long that took, and how often they agreed with the AI."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Connection, Text, and_, cast, func, literal, or_, select

from board.proportions import wilson
from board.reports.figures import share, spread_of
from board.reports.flow import UNDONE
from board.reports.sql import beside, json_part, within
from board.reports.weeks import Window
from board.review.models import openings, reviews
from board.review.policy import Reason
from board.review.quality import SUGGESTED
from board.tasks.models import task_events, tasks
from board.tasks.states import Status

VERDICTS = {"approved": "approve", "revised": "revise", "rejected": "reject"}
PEOPLE = ("person", "key")  # a key decides what a person has decided elsewhere; the clock decides nothing
HASTY = 3.0  # seconds from opening a review to deciding it, in which nobody can have read it
BINS = ((0.0, 0.5), (0.5, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.0))
ENOUGH = 30  # decisions, for a calibration that says something
FEW_WEEKS = 4  # looked at where one week has fewer


@dataclass(frozen=True, slots=True)
class Decision:
    """One that was final. seconds: since the review began; unseen: until somebody first opened it; looked: since who
    decided opened it, None where it was decided elsewhere. proposed, confidence: what the AI had said.
    """

    type: str
    verdict: str
    edited: bool
    reason: str
    seconds: float
    unseen: float | None
    looked: float | None
    who: str
    proposed: str | None
    confidence: float | None

    @property
    def overrides(self) -> bool:
        return self.edited or self.verdict != "approve"

    @property
    def suggested(self) -> bool:
        return self.reason in SUGGESTED


def made(connection: Connection, window: Window) -> list[Decision]:
    """Decisions of the week that were not taken back, in their order. People make them, so a list of them is short."""
    event = task_events
    person = literal("user:", Text()) + event.c.actor_name
    opened = select(func.min(openings.c.opened_at)).where(openings.c.review == reviews.c.id)
    first = opened.correlate(reviews).scalar_subquery().label("first")
    own = opened.where(openings.c.person == person).correlate(reviews, event).scalar_subquery().label("own")
    back = func.coalesce(beside(event, "kind", after=True), "") == UNDONE
    query = (
        select(event.c.at, event.c.kind, event.c.actor_kind, event.c.actor_name, event.c.data, tasks.c.type)
        .add_columns(reviews.c.reason, reviews.c.opened_at, reviews.c.edited, reviews.c.proposed, first, own)
        .join(tasks, tasks.c.id == event.c.task)
        .join(reviews, reviews.c.id == cast(json_part(event.c.data, "review"), BigInteger()))
        .where(within(window, event.c.at), event.c.kind.in_(VERDICTS), event.c.actor_kind.in_(PEOPLE), ~back)
        .order_by(event.c.at, event.c.id)
    )
    return [_decision(row) for row in connection.execute(query)]


def _decision(row: Any) -> Decision:
    return Decision(
        type=row.type,
        verdict=VERDICTS[row.kind],
        edited=row.edited,
        reason=row.reason,
        seconds=(row.at - row.opened_at).total_seconds(),
        unseen=None if row.first is None or row.first > row.at else (row.first - row.opened_at).total_seconds(),
        looked=None if row.own is None or row.own > row.at else (row.at - row.own).total_seconds(),
        who=f"{'user' if row.actor_kind == 'person' else row.actor_kind}:{row.actor_name}",
        proposed=row.proposed,
        confidence=row.data.get("confidence"),
    )


def waits(decisions: Sequence[Decision]) -> dict[str, Any]:
    """From needs_review to the final decision, by the clock on the wall; also by type."""
    return spread_of([it.seconds for it in decisions]) | {
        "until_opened": spread_of([it.unseen for it in decisions if it.unseen is not None]),
        "from_opened": spread_of([it.seconds - it.unseen for it in decisions if it.unseen is not None]),
        "by_type": [
            {"type": name} | spread_of([it.seconds for it in group])
            for name, group in _grouped(decisions, lambda it: it.type)
        ],
    }


def overrides(decisions: Sequence[Decision]) -> dict[str, Any]:
    """How often people did something else than the AI had suggested: changed it, sent it back, or refused it."""
    suggested = [it for it in decisions if it.suggested]
    verdicts = Counter("edit" if it.edited else it.verdict for it in suggested)
    return _override(suggested) | {
        **{name: verdicts[name] for name in ("approve", "edit", "revise", "reject")},
        "by_type": [{"type": name} | _override(group) for name, group in _grouped(suggested, lambda it: it.type)],
    }


def _override(group: Sequence[Decision]) -> dict[str, Any]:
    changed = sum(it.overrides for it in group)
    return {"n": len(group), "overridden": changed, "rate": share(changed, len(group))}


def agreement(decisions: Sequence[Decision]) -> dict[str, Any]:
    """Where the AI had proposed a verdict: how often the person's was the same."""
    asked = [it for it in decisions if it.suggested and it.proposed]
    same = sum(it.verdict == it.proposed for it in asked)
    return {"n": len(asked), "same": same, "rate": share(same, len(asked))}


def quality(decisions: Sequence[Decision], passed: int) -> dict[str, Any]:
    """What passed the rules unseen, and how often people disagreed with the sample of it. passed: so many unseen."""
    sampled = [it for it in decisions if it.reason == Reason.SAMPLE]
    wrong = sum(it.overrides for it in sampled)
    interval = wilson(wrong, len(sampled))
    told = None if interval is None else [round(it, 6) for it in interval]
    return {"auto_approved": passed, "sampled": len(sampled), "disagreed": wrong, "interval": told}


def calibration(decisions: Sequence[Decision], passed: int) -> dict[str, Any]:
    """How well the AI's confidence fits what people said. A sampled decision stands for those that passed unseen too.

    Of each bin n, mean confidence, share approved unchanged, gap; over all the Brier score and the expected calibration
    error, which weigh alike.
    """
    asked = [it for it in decisions if it.suggested and it.confidence is not None]
    if len(asked) < ENOUGH:
        return {"n": len(asked), "bins": [], "brier": None, "ece": None}
    sampled = sum(it.reason == Reason.SAMPLE for it in asked)
    stands_for = (passed + sampled) / sampled if sampled else 1.0
    weighed = [(it, stands_for if it.reason == Reason.SAMPLE else 1.0) for it in asked]
    total = sum(weight for _, weight in weighed)
    bins: list[dict[str, float | None]] = []
    error = 0.0
    for low, high in BINS:
        inside = [(it, weight) for it, weight in weighed if low <= _sure(it) and (_sure(it) < high or high == 1.0)]
        weight = sum(weight for _, weight in inside)
        if not weight:
            bins.append({"from": low, "to": high, "n": 0, "confidence": None, "approved": None, "gap": None})
            continue
        sure = sum(_sure(it) * weight for it, weight in inside) / weight
        right = sum(weight for it, weight in inside if not it.overrides) / weight
        error += weight / total * abs(sure - right)
        told: dict[str, float | None] = {"confidence": round(sure, 4), "approved": round(right, 4)}
        bins.append({"from": low, "to": high, "n": len(inside)} | told | {"gap": round(sure - right, 4)})
    brier = sum(weight * (_sure(it) - (not it.overrides)) ** 2 for it, weight in weighed) / total
    return {"n": len(asked), "bins": bins, "brier": round(brier, 4), "ece": round(error, 4)}


def _sure(it: Decision) -> float:
    assert it.confidence is not None
    return min(1.0, max(0.0, it.confidence))


def calibrated(connection: Connection, window: Window, decisions: Sequence[Decision], passed: int) -> dict[str, Any]:
    """The same of this week, or of the last four where it has too few decisions."""
    found = calibration(decisions, passed)
    if found["n"] >= ENOUGH:
        return found | {"weeks": 1}
    longer = window.since(FEW_WEEKS)
    return calibration(made(connection, longer), auto_approved(connection, longer)) | {"weeks": FEW_WEEKS}


def auto_approved(connection: Connection, window: Window) -> int:
    """Results that a type's rules let through without a person."""
    query = select(func.count()).where(
        within(window, task_events.c.at),
        task_events.c.from_status == Status.RUNNING,
        task_events.c.kind.in_(("done", "work_done")),
        task_events.c.data.is_not(None),
        json_part(task_events.c.data, "passed") == "rules",
    )
    return int(connection.execute(query).scalar_one())


def people(decisions: Sequence[Decision]) -> list[dict[str, Any]]:
    """Each person's own part; for the eyes of that person and of owners."""
    return [
        {"who": who, "decisions": len(group), "overridden": sum(it.overrides for it in group)}
        | {"wait": spread_of([it.seconds for it in group]), "approved_in_a_row": _streak(group)}
        | {"hasty": sum(it.looked is not None and it.looked < HASTY for it in group)}
        for who, group in _grouped(decisions, lambda it: it.who)
    ]


def health(decisions: Sequence[Decision]) -> dict[str, Any]:
    """Whether people still look: decisions in less time than reading takes, and the longest row of approvals of one."""
    rows = [_streak(group) for _, group in _grouped(decisions, lambda it: it.who)]
    hasty = sum(it.looked is not None and it.looked < HASTY for it in decisions)
    return {
        "decisions": len(decisions),
        "deciders": len(rows),
        "hasty": hasty,
        "approved_in_a_row": max(rows, default=0),
    }


def _streak(decisions: Iterable[Decision]) -> int:
    longest = row = 0
    for it in decisions:
        row = 0 if it.overrides else row + 1
        longest = max(longest, row)
    return longest


def _grouped(decisions: Iterable[Decision], key: Callable[[Decision], str]) -> list[tuple[str, list[Decision]]]:
    found: dict[str, list[Decision]] = defaultdict(list)
    for it in decisions:
        found[key(it)].append(it)
    return sorted(found.items(), key=lambda it: (-len(it[1]), it[0]))


OLDEST = 5  # shown; the page of open reviews has all of them


def waiting(connection: Connection, window: Window, *, titles: bool) -> dict[str, Any]:
    """Reviews that were open at the end of the week. titles: whether the report may say what the tasks are called."""
    was_open = _open_at(window.end)
    about = select(tasks.c.task_id, tasks.c.type, tasks.c.title, tasks.c.assignee, reviews.c.claimed_by)
    oldest = (
        about.add_columns(reviews.c.id, reviews.c.opened_at, reviews.c.due_at)
        .join(tasks, tasks.c.id == reviews.c.task)
        .where(was_open)
        .order_by(reviews.c.opened_at, reviews.c.id)
        .limit(OLDEST)
    )
    late = func.count().filter(reviews.c.due_at <= window.end)
    n, overdue = connection.execute(select(func.count(), late).select_from(reviews).where(was_open)).one()
    return {
        "n": n,
        "past_due": overdue,
        "oldest": [
            {
                "review": str(row.id),
                "task_id": row.task_id,
                "type": row.type,
                "title": row.title if titles else None,
                "owner": row.assignee or row.claimed_by,
                "age": round((window.end - row.opened_at).total_seconds(), 3),
                "past_due": row.due_at is not None and row.due_at <= window.end,
            }
            for row in connection.execute(oldest)
        ],
    }


def unknown(connection: Connection, window: Window, kinds: Counter[str]) -> dict[str, Any]:
    """Calls of tasks that went out and of which nobody knows whether they happened."""
    query = select(func.count(), func.min(reviews.c.opened_at)).where(
        reviews.c.reason == Reason.UNKNOWN_OUTCOME, _open_at(window.end)
    )
    n, since = connection.execute(query).one()
    return {
        "open": n,
        "new": kinds["outcome_unknown"],
        "resolved": kinds["confirmed_happened"] + kinds["send_again"] + kinds["dropped"],
        "oldest": None if since is None else round((window.end - since).total_seconds(), 3),
    }


def _open_at(moment: datetime) -> Any:
    """Open now, or left since; each part by an index of its own."""
    still = reviews.c.status == "open"
    return and_(reviews.c.opened_at < moment, or_(still, reviews.c.decided_at >= moment))
