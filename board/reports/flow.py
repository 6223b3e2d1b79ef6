"""What came in and how it ended, in one week: counted from the moves that the log has of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Subquery, and_, func, literal, or_, select, union

from board.db.types import UtcTime
from board.ports import Cause
from board.reports.figures import share, spread
from board.reports.sql import beside, day_of, json_part, percentiles, seconds_between, within
from board.reports.weeks import Window
from board.tasks.models import task_events, tasks
from board.tasks.states import AT_REST, TERMINAL, Status

UNDONE = "decision_undone"
ENDS = (Status.DONE, Status.FAILED, Status.CANCELLED)
OPEN = tuple(str(it) for it in Status if it not in TERMINAL)
EXPIRED = "review_expired"  # among causes: a review that nobody decided in time failed the task
# How a task is cancelled, by the kind of the event. What else there is was asked for by whoever put it in, or operates.
WAYS = {"rejected": "rejected", EXPIRED: "expired", "dropped": "dropped"}
MUCH_UNKNOWN = 0.1  # of failures; above it the causes say too little to act on
# A retry begins a visit to `retrying` in these ways; the others only wait for news of a call that was made before.
RETRIES = ("retry_planned", "lease_lost")
ENDS_A_WAIT = ("started", "run_now")
DAY_SECONDS = 86_400.0


@dataclass(slots=True)
class Ended:
    """Tasks that ended in the week, each once for every way in which it ended last: done, failed, cancelled."""

    by_type: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    by_day: list[Counter[str]] = field(default_factory=lambda: [Counter() for _ in range(7)])
    ways: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    causes_by_type: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    examples: dict[str, int] = field(default_factory=dict)  # of each cause a task, by its internal id

    @property
    def totals(self) -> Counter[str]:
        return sum(self.by_type.values(), Counter())


def entries(window: Window) -> Subquery:
    """One row for each task and status that it ended in, in this week: of several times the last.

    A rejection that was taken back has not ended anything, also where it was taken back after the week.
    """
    moved = task_events
    taken_back = and_(moved.c.kind == "rejected", func.coalesce(beside(moved, "kind", after=True), "") == UNDONE)
    nth = func.row_number().over(partition_by=(moved.c.task, moved.c.to_status), order_by=moved.c.seq.desc())
    columns = moved.c.task, moved.c.seq, moved.c.at, moved.c.kind, moved.c.to_status, moved.c.actor_kind, moved.c.data
    every = select(*columns, nth.label("nth")).where(within(window, moved.c.at), moved.c.to_status.in_(ENDS))
    return every.where(or_(moved.c.kind != "rejected", ~taken_back)).subquery()


def ended(connection: Connection, window: Window) -> Ended:
    it = entries(window)
    cause = json_part(it.c.data, "cause")
    day = day_of(window, it.c.at).label("day")
    query = (
        select(tasks.c.type, it.c.to_status, it.c.kind, it.c.actor_kind, cause.label("cause"), day)
        .add_columns(func.count().label("n"), func.max(it.c.task).label("example"))
        .join(tasks, tasks.c.id == it.c.task)
        .where(it.c.nth == 1)
        .group_by(tasks.c.type, it.c.to_status, it.c.kind, it.c.actor_kind, cause, day)
    )
    found = Ended()
    for row in connection.execute(query):
        found.by_type[row.type][row.to_status] += row.n
        found.by_day[row.day][row.to_status] += row.n
        if row.to_status == Status.CANCELLED:
            asked = "caller" if row.actor_kind in ("person", "key") else "board"
            found.ways[WAYS.get(row.kind, asked)] += row.n
        elif row.to_status == Status.FAILED:
            why = _cause(row.kind, row.cause)
            found.causes[why] += row.n
            found.causes_by_type[row.type][why] += row.n
            found.examples[why] = max(row.example, found.examples.get(why, 0))
    return found


def _cause(kind: str, cause: str | None) -> str:
    if kind == EXPIRED:
        return EXPIRED
    if kind == "worker_died":
        return Cause.CRASH
    return cause if cause in list(Cause) else Cause.UNKNOWN


def failures(connection: Connection, found: Ended) -> dict[str, Any]:
    total = sum(found.causes.values())
    ids = select(tasks.c.id, tasks.c.task_id).where(tasks.c.id.in_(list(found.examples.values())))
    names = {row.id: row.task_id for row in connection.execute(ids)} if found.examples else {}
    causes = [
        {"cause": cause, "n": n, "share": share(n, total), "example": names.get(found.examples[cause])}
        for cause, n in sorted(found.causes.items(), key=lambda it: (-it[1], it[0]))
    ]
    unknown = share(found.causes[Cause.UNKNOWN], total) or 0.0
    return {"n": total, "causes": causes, "much_unknown": unknown > MUCH_UNKNOWN}


def created(connection: Connection, window: Window) -> tuple[Counter[str], list[int]]:
    """Tasks that were made in the week: by type, and by day."""
    day = day_of(window, task_events.c.at).label("day")
    query = (
        select(tasks.c.type, day, func.count().label("n"))
        .join(tasks, tasks.c.id == task_events.c.task)
        .where(within(window, task_events.c.at), task_events.c.kind == "created")
        .group_by(tasks.c.type, day)
    )
    types: Counter[str] = Counter()
    days = [0] * 7
    for row in connection.execute(query):
        types[row.type] += row.n
        days[row.day] += row.n
    return types, days


def kinds(connection: Connection, window: Window) -> Counter[str]:
    """How often each kind of event happened. Approvals by the clock are counted as `approved_by_clock` too."""
    by_clock = and_(task_events.c.kind == "approved", task_events.c.actor_kind == "timer")
    query = (
        select(task_events.c.kind, by_clock.label("by_clock"), func.count().label("n"))
        .where(within(window, task_events.c.at))
        .group_by(task_events.c.kind, by_clock)
    )
    found: Counter[str] = Counter()
    for row in connection.execute(query):
        found[row.kind] += row.n
        if row.by_clock:
            found["approved_by_clock"] += row.n
    return found


def timed_out(connection: Connection, window: Window, found: Counter[str]) -> dict[str, int]:
    """Attempts that took too long, deadlines missed, and reviews whose time was over."""
    attempts = select(func.count()).where(
        within(window, task_events.c.at),
        task_events.c.from_status == Status.RUNNING,
        task_events.c.data.is_not(None),
        json_part(task_events.c.data, "cause") == Cause.TIMEOUT,
    )
    handlers = connection.execute(attempts).scalar_one()
    reviews = found["review_overdue"] + found[EXPIRED] + found["approved_by_clock"]
    total = handlers + found["deadline_missed"] + reviews
    return {"n": total, "handlers": handlers, "deadlines": found["deadline_missed"], "reviews": reviews}


def _visits(window: Window) -> Any:
    """Stays in a status that ended in the week: which, and for how long."""
    left = task_events
    since = beside(left, "at", after=False)
    return (
        select(tasks.c.type, left.c.from_status.label("status"), seconds_between(since, left.c.at).label("seconds"))
        .join(tasks, tasks.c.id == left.c.task)
        .where(within(window, left.c.at), left.c.from_status.in_(OPEN))
    )


def stays(connection: Connection, window: Window) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """By status the times of visits that ended in the week; and by type those of running ones."""
    visits = _visits(window).subquery()
    running = select(visits.c.type, visits.c.seconds).where(visits.c.status == Status.RUNNING).subquery()
    states = {it.status: _told(it) for it in connection.execute(percentiles(visits, "status"))}
    return states, {it.type: _told(it) for it in connection.execute(percentiles(running, "type"))}


def open_stays(connection: Connection, window: Window) -> dict[str, dict[str, Any]]:
    """By status the ages of visits that are not over at the end: apart from the others, which they would make shorter.

    Looked at are tasks that are open now, and those that have moved since; of each the last move before the end.
    """
    moved = select(task_events.c.task).where(task_events.c.at >= window.end, task_events.c.to_status.is_not(None))
    some = union(select(tasks.c.id.label("task")).where(tasks.c.status.in_(OPEN)), moved).subquery()
    last = task_events.alias("last")
    before = task_events.alias("before")
    number = (
        select(func.max(before.c.seq))
        .where(before.c.task == some.c.task, before.c.to_status.is_not(None), before.c.at < window.end)
        .correlate(some)
        .scalar_subquery()
    )
    end = literal(window.end, UtcTime())
    ages = (
        select(last.c.to_status.label("status"), seconds_between(last.c.at, end).label("seconds"))
        .join(some, and_(last.c.task == some.c.task, last.c.seq == number))
        .where(last.c.to_status.in_(OPEN))
        .subquery()
    )
    return {it.status: _told(it) for it in connection.execute(percentiles(ages, "status"))}


def _told(row: Any) -> dict[str, Any]:
    return spread(row.n, row.p50, row.p90, row.most)


def retries(connection: Connection, window: Window) -> dict[str, Any]:
    """Attempts after the first: what began again after a failure or a lost lease, not what only waited for news."""
    begun = task_events
    again = (
        within(window, begun.c.at),
        begun.c.from_status == Status.RETRYING,
        begun.c.kind.in_(ENDS_A_WAIT),
        beside(begun, "kind", after=False).in_(RETRIES),
    )
    every = select(begun.c.task, func.count().label("n")).where(*again).group_by(begun.c.task).subquery()
    done = task_events.alias("done")
    ended_done = (
        select(done.c.id)
        .where(done.c.task == every.c.task, done.c.to_status == Status.DONE, within(window, done.c.at))
        .correlate(every)
        .exists()
    )
    row = connection.execute(
        select(func.coalesce(func.sum(every.c.n), 0), func.count(), func.count().filter(ended_done)).select_from(every)
    ).one()
    attempts, retried, done_after = (int(it) for it in row)
    return {"n": attempts, "tasks": retried, "ended_done": done_after, "share_done": share(done_after, retried)}


def ageing(connection: Connection, window: Window, number: int) -> dict[str, Any]:
    """Tasks that were lifted by a lane because they had waited: how long until then, and whether it helped."""
    if not number:
        return {"n": 0, "waited_p50": None, "share_in_a_day": None}
    lifted = task_events
    rest = task_events.alias("rest")
    reached = (
        select(func.min(rest.c.at))
        .where(rest.c.task == lifted.c.task, rest.c.seq > lifted.c.seq, rest.c.to_status.in_(AT_REST))
        .correlate(lifted)
        .scalar_subquery()
    )
    rises = (
        select(
            seconds_between(beside(lifted, "at", after=False), lifted.c.at).label("seconds"),
            seconds_between(lifted.c.at, reached).label("until"),
        )
        .where(within(window, lifted.c.at), lifted.c.kind == "aged", json_part(lifted.c.data, "first").is_(None))
        .subquery()
    )
    told = connection.execute(percentiles(select(rises.c.seconds).subquery())).one()
    soon = connection.execute(select(func.count()).where(rises.c.until <= DAY_SECONDS)).scalar_one()
    waited = spread(told.n, told.p50, None)["p50"] if told.n else None
    return {"n": told.n or 0, "waited_p50": waited, "share_in_a_day": share(soon, told.n or 0)}
