"""Why a task does not move right now: one code, one plain sentence, and when it is expected to start if that is known.

The codes stand in docs/queue.md. What a list needs is asked once for all its rows: no query per task.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from sqlalchemy import Connection, RowMapping, select

from board.catalogue.store import Catalogue
from board.db.clock import read_now
from board.queue import held, live
from board.queue.live import QueueRules
from board.queue.usage import Forecast
from board.queue.wanted import Scope
from board.tasks.models import tasks
from board.tasks.states import Phase, Pool, Status
from board.tasks.view import time

Answer = dict[str, Any]
# Tasks before one are counted up to so many: reading a thousand entries of an index takes a millisecond, and whoever
# has more before him wants to know no number.
MOST = 1000
# A program that works from outside asks at least so often; a task that came just now is not without a worker yet.
ASKED_WITHIN = timedelta(seconds=60)


class Crew(Protocol):
    """Who is at work in the board's own pool."""

    def lack(self, type_name: str, lane: int, handler: str) -> tuple[str, str] | None:
        """Why no worker that is alive takes such a task, as cause and sentence; None when one does."""

    def pace(self, lane: int) -> float:
        """Tasks of a lane that all workers together have begun per minute lately; 0 when not known."""


# When the limits that are asked about let in what they hold back.
Opening = Callable[[Connection, Collection[str]], Mapping[str, Forecast]]
# The types that must not be begun now, each with why, in one sentence.
KeptBack = Callable[[Connection], Mapping[str, str]]
# The types of which outside programs have claimed work lately, of those that are asked about.
AtWorkOutside = Callable[[Connection, Collection[str]], Collection[str]]


@dataclass(frozen=True, slots=True)
class Waiting:
    """catalogue: says which handler a task needs. crew: who is at work now. opening: what is known of limits.
    kept_back: by failing connections and used-up budgets."""

    catalogue: Catalogue
    crew: Callable[[Connection], Crew]
    outside: AtWorkOutside
    opening: Opening = lambda _connection, _scopes: {}
    kept_back: KeptBack = lambda _connection: {}

    def of(self, connection: Connection, rows: Iterable[RowMapping], *, places: bool = False) -> dict[int, Answer]:
        """What these tasks wait for, by internal id; one that runs or has ended waits for nothing and is left out.

        places: also how many are before each in its lane, up to MOST, and an estimate of when it starts.
        """
        answers = {row["id"]: _person() for row in rows if row["status"] == Status.NEEDS_REVIEW}
        open_rows = [row for row in rows if row["status"] in (Status.PENDING, Status.RETRYING)]
        if not open_rows:
            return answers
        moment, rules = read_now(connection), live.read(connection)
        ready = []
        for row in open_rows:
            if (answer := _of_itself(row, moment, rules)) is not None:
                answers[row["id"]] = answer
            else:
                ready.append(row)
        self._tell_opening(connection, answers, places)
        return answers | self._of_ready(connection, ready, moment, rules, places) if ready else answers

    def _tell_opening(self, connection: Connection, answers: Mapping[int, Answer], places: bool) -> None:
        """Add to what waits for limits when they open, and how many each limit lets in before it."""
        limited = {task: answer for task, answer in answers.items() if answer["code"] == "limit"}
        scopes = {answer["limit"] for answer in limited.values()}
        opening = self.opening(connection, scopes) if scopes else {}
        before = {scope: held.places(connection, scope, MOST) for scope in scopes} if places else {}
        for task, answer in limited.items():
            scope, forecast = answer["limit"], opening.get(answer["limit"])
            if forecast is not None and (opens := forecast.opens_at) is not None:
                answer["opens_at"] = time(opens)
                answer["message"] += f" The next one may start at {answer['opens_at']}."
            if not places:
                continue
            place = before[scope].get(task)
            answer.update({"behind": MOST, "more": True} if place is None else {"behind": place})
            if forecast is None or place is None or (at := forecast.starts_at(place)) is None:
                continue
            answer.update(expected_at=time(at.replace(microsecond=0)), estimated=True)
            answer["message"] += f" Expected start by its rate: {answer['expected_at']}."

    def _of_ready(
        self, connection: Connection, rows: Sequence[RowMapping], moment: datetime, rules: QueueRules, places: bool
    ) -> dict[int, Answer]:
        """Tasks that any worker could begin now: is there one, and who is before them?"""
        crew = self.crew(connection)
        asked = {row["type"] for row in rows if row["pool"] == Pool.OUTSIDE}
        at_work = self.outside(connection, asked) if asked else ()
        kept = self.kept_back(connection)
        before = _places(connection, rows, rules) if places else {}
        answers: dict[int, Answer] = {}
        for row in rows:
            place = before.get(row["id"], MOST + 1) if places else None
            if row["pool"] == Pool.OUTSIDE:
                alone = row["type"] not in at_work and moment - row["ready_at"] > ASKED_WITHIN
                answers[row["id"]] = _no_worker(*_NOBODY_OUTSIDE) if alone else _outside(row, place)
            elif row["type"] in kept and row["phase"] == Phase.WORK:
                answers[row["id"]] = {"code": "held", "message": kept[row["type"]]}
            elif (lack := crew.lack(row["type"], row["lane"], self._handler(connection, row))) is not None:
                answers[row["id"]] = _no_worker(*lack)
            elif row["suspect"]:
                answers[row["id"]] = _suspect()
            else:
                answers[row["id"]] = _queue(row, place, crew.pace(row["lane"]), moment)
        return answers

    def _handler(self, connection: Connection, row: RowMapping) -> str:
        spec = self.catalogue.version(connection, row["type"], row["type_version"]).spec
        return spec.action.use if row["phase"] == Phase.ACT and spec.action is not None else spec.handler.use


def _places(connection: Connection, rows: Sequence[RowMapping], rules: QueueRules) -> Mapping[int, int]:
    """How many are before each of the first tasks, up to MOST, of the lanes that `rows` wait in: one query a lane.

    In the very order in which candidates are claimed, through ix_tasks_ready, so that 100,000 more cost nothing.
    """
    found: dict[int, int] = {}
    for pool, lane in {(row["pool"], row["lane"]) for row in rows}:
        scope = Scope(Pool(pool), without_types=rules.paused_types)
        head = (
            select(tasks.c.id)
            .where(*scope.ready(), tasks.c.lane == lane, tasks.c.suspect.is_(False))
            .order_by(tasks.c.rank, tasks.c.ready_at, tasks.c.id)
            .limit(MOST + 1)
        )
        found |= {task: place for place, task in enumerate(connection.execute(head).scalars())}
    return found


# -- the answers, in the order in which they are asked ---------------------------------------------------------------


def _of_itself(row: RowMapping, moment: datetime, rules: QueueRules) -> Answer | None:
    """What can be told from the task and the settings alone."""
    later = row["ready_at"] > moment
    at = time(row["ready_at"])
    if row["unmet_needs"]:
        number = row["unmet_needs"]
        return {"code": "need", "message": f"It waits for {number} other task{'s' if number > 1 else ''} to be done."}
    if later and row["status"] == Status.RETRYING and row["reconciling"]:
        message = f"It is being found out what became of a call; the next look is at {at}."
        return {"code": "reconciling", "message": message, "expected_at": at}
    if later and row["status"] == Status.RETRYING:
        return {"code": "retry", "message": f"The next try is at {at}.", "expected_at": at}
    if row["phase"] == Phase.ACT and (later or not row["has_action"]):
        return {"code": "grace", "message": f"The decision can be undone until {at}.", "expected_at": at}
    if later:
        return {"code": "due", "message": f"It starts at {at}.", "expected_at": at}
    if rules.is_paused(row["type"]):
        return {"code": "paused", "message": "Work of this type, or of the whole queue, is paused by a person."}
    if row["held_by"] is not None:
        return {"code": "limit", "message": f"{_limit(row['held_by'])} is reached.", "limit": row["held_by"]}
    return None


def _limit(scope: str) -> str:
    """A limit in words, from its name in `tasks.held_by`."""
    kind, _, name = scope.partition(":")
    if kind == "key":
        return f"The limit of the type {name.rpartition(':')[0]} for tasks of one key"
    return f"The limit of the {kind} {name}"


_NOBODY_OUTSIDE = (
    "outside",
    "No outside program has claimed work of this type lately. Start the one that claims it (POST /claims).",
)


def _person() -> Answer:
    return {"code": "person", "message": "A person decides."}


def _no_worker(cause: str, message: str) -> Answer:
    return {"code": "no_worker", "cause": cause, "message": message}


def _suspect() -> Answer:
    return {"code": "alone", "message": "Its worker died before; it runs as soon as a worker is free of other work."}


def _outside(row: RowMapping, place: int | None) -> Answer:
    message = "It waits for an outside worker to claim it."
    return {"code": "outside", "message": message} | _behind(row, message, place)


def _queue(row: RowMapping, place: int | None, pace: float, moment: datetime) -> Answer:
    slot = "slot for files" if row["pool"] == Pool.FILES else "slot"
    answer = {"code": "queue", "message": f"It starts as soon as a worker has a free {slot}."}
    answer |= _behind(row, answer["message"], place)
    if place is None or place > MOST or pace <= 0:
        return answer
    at = time((moment + timedelta(minutes=(place + 1) / pace)).replace(microsecond=0))
    message = f"{answer['message']} Expected start at this pace: {at}."
    return answer | {"message": message, "expected_at": at, "estimated": True}


def _behind(row: RowMapping, message: str, place: int | None) -> Answer:
    """`behind`: how many are before it; `more`: there are more than that."""
    if place is None:
        return {}
    lane = f"P{row['lane']}"
    if place > MOST:
        return {"behind": MOST, "more": True, "message": f"More than {MOST:,} tasks are before it in lane {lane}."}
    if place == 0:
        return {"behind": 0, "message": f"It is the next one of lane {lane}. {message}"}
    are = "task is" if place == 1 else "tasks are"
    return {"behind": place, "message": f"{place} {are} before it in lane {lane}."}
