"""Handing out tasks to outside workers, by the same turns as inside: lanes by their shares, suspects alone, pauses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, insert, select

from board import templating
from board.access.rights import Actor
from board.catalogue.store import Catalogue, UnknownType
from board.db.clock import now, read_now
from board.db.engine import Database
from board.effects import outside
from board.ports import Cause, ErrorClass, Failure, Json, JsonObject, Outcome, UnknownOutcome
from board.queue import live
from board.queue.wanted import Queue, Scope, Wanted
from board.signals.arrivals import Arrivals
from board.signals.signal import Signal
from board.tasks.context import template_context
from board.tasks.history import By
from board.tasks.intake import Problem
from board.tasks.ledger import Lease, Ledger
from board.tasks.states import READY, Pool, Status
from board.tasks.view import data_of
from board.worker.ending import Ended, Ending
from board.worker.models import claims

# Key names have at most 120 characters, and `key:NAME/WORKER` must fit the 200 of a worker's name in the history.
MAX_WORKER = 75


@dataclass(frozen=True, slots=True)
class WorkWanted:
    """What a worker asks for. types, lanes: None means all; lease: seconds."""

    worker: str
    limit: int = 1
    lease: float = 60.0
    types: Sequence[str] | None = None
    lanes: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class HandedOut:
    """A claim that has just been made. task: the row as claimed; inputs: as the type's `handler.inputs` say."""

    claim_id: str
    task: RowMapping
    inputs: JsonObject
    instruction: str | None  # what the reviewer asked for, from round 2 on
    former_output: Json


class NotWaiting(Exception):
    """The task takes no result just now. The text says why, in words for whoever wants to report one."""


class HandingOut:
    """weights: the usual shares of P0 to P3, zone: of the windows with others; see board.queue.live. tell: gets
    progress and text of outside workers, once they are stored."""

    def __init__(
        self,
        db: Database,
        ledger: Ledger,
        catalogue: Catalogue,
        queue: Queue,
        *,
        weights: Sequence[int],
        zone: str,
        tell: Callable[[Signal], None],
    ) -> None:
        self.arrivals = Arrivals()
        self._tell = tell
        self._db, self._ledger, self._catalogue, self._queue = db, ledger, catalogue, queue
        self._ending = Ending(db, ledger, catalogue)
        self._weights, self._zone = weights, zone

    def take(self, actor: Actor, wanted: WorkWanted) -> list[HandedOut]:
        """Claim ready work, urgent lanes first by their shares. Empty when there is none. Raises Problem."""
        with self._db.read() as connection:
            for number, name in enumerate(wanted.types or ()):
                try:
                    self._catalogue.current(connection, name)
                except UnknownType as error:
                    raise Problem(f"types[{number}]", str(error), "unknown_type") from error
            rules = live.read(connection)
            weights = rules.weights_at(read_now(connection), self._zone, self._weights)
        if rules.paused:
            return []
        by = By(actor.kind, f"{actor.name}/{wanted.worker}", "api")
        made: list[int] = []

        def enter(tx: Connection, rows: Sequence[RowMapping]) -> None:
            made.extend(_made(tx, actor, row, wanted) for row in rows)

        taken = self._queue.claim(
            Wanted(
                scope=Scope(Pool.OUTSIDE, wanted.types, rules.paused_types, wanted.lanes),
                slots=wanted.limit,
                rest=wanted.limit,
                worker=by.identity,
                lease=wanted.lease,
                weights=weights,
                by=by,
                within=enter,
            )
        )
        found = [self._handed_out(claim, row, by) for claim, row in zip(made, taken.rows, strict=True)]
        return [it for it in found if it is not None]

    def claim_one(self, actor: Actor, task: int, worker: str) -> str:
        """The claim under which this actor may hand in the result of one task (its internal id), work that he has done.

        That is the claim which he made last, if no other was made since: open, or settled by this very result before.
        Else a new one, where the task waits for outside workers. Pauses keep back nothing here, for no work begins.
        Raises NotWaiting.
        """
        wanted = WorkWanted(worker)
        by = By(actor.kind, f"{actor.name}/{worker}", "api")
        with self._db.write() as tx:
            row = self._ledger.lock(tx, task)
            query = select(claims.c.id).where(
                claims.c.task == task, claims.c.number == row["lease_token"], claims.c.owner == actor.identity
            )
            own = tx.execute(query).scalar()
            if own is not None and row["status"] not in READY:
                return str(own)
            found = self._ledger.candidates_of(tx, [task], pool=Pool.OUTSIDE)
            taken = self._ledger.claim(tx, found, worker=by.identity, lease=wanted.lease, by=by)
            if not taken:
                raise NotWaiting(_why_not(row))
            claim = _made(tx, actor, taken[0], wanted)
        if self._handed_out(claim, taken[0], by) is None:
            raise NotWaiting("A person has to look at this task first, so it takes no result now.")
        return str(claim)

    def _handed_out(self, claim: int, row: RowMapping, by: By) -> HandedOut | None:
        """None: a person is asked what became of an earlier claim's call, or the type's templates cannot be filled for
        this task, which fails as it does in the board's workers.
        """
        with self._db.read() as connection:
            spec = self._catalogue.version(connection, row["type"], row["type_version"]).spec
            data = data_of(connection, row["id"])
            open_calls = outside.left_open(connection, row) if row["lease_token"] > 1 else ()
        if open_calls:
            message = f"An earlier claim has not said what became of its call to {open_calls[0]['target']}."
            self._end_at_once(row, by, UnknownOutcome(message), open_calls[0]["id"])
            return None
        inputs = data["payload"]
        try:
            if spec.handler.inputs is not None:
                inputs = templating.fill(spec.handler.inputs, template_context(row, data))
        except templating.TemplateProblem as error:
            self._end_at_once(row, by, Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error)), None)
            return None
        return HandedOut(str(claim), row, inputs, data["instruction"], data["former_output"])

    def _end_at_once(self, row: RowMapping, by: By, outcome: Outcome, operation: int | None) -> None:
        self._ending.write(Ended(row, Lease(row["id"], row["lease_token"]), by, outcome, operation))


def _why_not(row: RowMapping) -> str:
    if row["status"] == Status.RUNNING:
        return "Another worker has claimed this task and is at work on it; your result was not taken."
    if row["status"] in READY:
        return "This task may not be begun yet, or a limit keeps it back; report the result again later."
    return f"This task is {row['status']}, so it takes no result."


def _made(tx: Connection, actor: Actor, row: RowMapping, wanted: WorkWanted) -> int:
    values = {
        "task": row["id"],
        "number": row["lease_token"],
        "type": row["type"],
        "owner": actor.identity,
        "worker": wanted.worker,
        "lease": wanted.lease,
        "made_at": now(),
    }
    return int(tx.execute(insert(claims).values(**values).returning(claims.c.id)).scalar_one())
