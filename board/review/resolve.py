"""A person says what became of a call: it happened, it did not, or it does not matter any more.

Where a task waits for that word, its review is decided with it. Calls without such a task (an outside program's, or one
whose task has ended) are only closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, update

from board.access.rights import Actor
from board.db.clock import now
from board.effects import journal, operations, outside
from board.effects.steps import NoSuchOperation
from board.review import read
from board.review.decide import DecisionRefused, Decisions, Verdict
from board.review.models import reviews
from board.review.policy import Reason, may_decide
from board.review.unknown import STATUS, close_as_said
from board.review.visits import open_review
from board.tasks.history import By, record
from board.tasks.ledger import Ledger
from board.tasks.states import TERMINAL, Move, Phase, Status
from board.tasks.view import time


@dataclass(frozen=True, slots=True)
class Resolved:
    """operation: as it stands now. repeated: the same answer by the same person came before."""

    operation: RowMapping
    repeated: bool


class Resolutions:
    def __init__(self, ledger: Ledger, decisions: Decisions) -> None:
        self._ledger, self._decisions = ledger, decisions

    def resolve(self, tx: Connection, operation: int, verdict: Verdict, actor: Actor, channel: str) -> Resolved:
        """Answer for one operation. Raises NotEligible, NoSuchOperation, DecisionRefused."""
        may_decide(actor)
        stored = operations.by_id(tx, operation)
        if stored is None:
            raise NoSuchOperation(str(operation))
        task = self._ledger.lock(tx, stored["task"]) if stored["task"] is not None else None
        stored = operations.by_id(tx, operation, lock=True)
        assert stored is not None
        repeated = False
        review = open_review(tx, task["id"]) if task is not None else None
        if review is not None and task is not None and _asks_about(tx, review, task, stored):
            _check_known(stored, verdict)
            self._decisions.require(tx, task, review, actor)
            repeated = self._with_review(tx, task, review, stored, verdict, actor, channel)
        elif answerable(stored, task):
            self._alone(tx, task, stored, verdict, actor.by(channel))
        elif (earlier := read.of_operation(tx, operation)) is not None:
            repeated = self._decisions.decide(tx, earlier["id"], verdict, actor, channel)
        else:
            repeated = _repeated(tx, stored, verdict, actor)
        after = operations.by_id(tx, operation)
        assert after is not None
        return Resolved(after, repeated)

    def _with_review(
        self,
        tx: Connection,
        task: RowMapping,
        review: RowMapping,
        stored: RowMapping,
        verdict: Verdict,
        actor: Actor,
        channel: str,
    ) -> bool:
        others = [row for row in outside.left_open(tx, task) if row["id"] != stored["id"]]
        mine = update(reviews).where(reviews.c.id == review["id"])
        if not others or verdict.verdict == "drop":
            tx.execute(mine.values(operation=stored["id"]))
            return self._decisions.decide(tx, review["id"], verdict, actor, channel)
        # Several calls are in question: the task moves on once the last of them is answered.
        by = actor.by(channel)
        close_as_said(tx, stored, verdict, by)
        _tell(tx, task, stored, verdict, by)
        again = bool((review["data"] or {}).get("again")) or verdict.verdict == "not_happened"
        values = {"operation": others[0]["id"], "version": reviews.c.version + 1, "data": {"again": again}}
        tx.execute(mine.values(**values))
        return False

    def _alone(self, tx: Connection, task: RowMapping | None, stored: RowMapping, verdict: Verdict, by: By) -> None:
        close_as_said(tx, stored, verdict, by)
        if task is None:
            return
        _tell(tx, task, stored, verdict, by)
        if stored["owner"] is not None:
            return  # what an outside program has only announced about a task does not move it
        task = self._ledger.lock(tx, task["id"])
        waits = task["status"] in (Status.PENDING, Status.RETRYING)
        if waits and verdict.verdict == "drop":
            self._ledger.cancel(tx, task, by, verdict.reason)
        elif task["status"] == Status.RETRYING and task["reconciling"]:  # what it waits for is known now
            self._ledger.move(tx, task, Move.RUN_NOW, by, changes={"ready_at": now()})


def _asks_about(tx: Connection, review: RowMapping, task: RowMapping, stored: RowMapping) -> bool:
    if review["reason"] != Reason.UNKNOWN_OUTCOME:
        return False
    return review["operation"] == stored["id"] or any(row["id"] == stored["id"] for row in outside.left_open(tx, task))


def _check_known(stored: RowMapping, verdict: Verdict) -> None:
    """The program may have said itself, meanwhile, how it went; a person's word does not turn that round."""
    wanted = STATUS[verdict.verdict]
    if stored["status"] in ("confirmed", "rejected") and stored["status"] != wanted:
        said = "it happened" if stored["status"] == "confirmed" else "it did not happen"
        raise DecisionRefused(
            "outcome_known", f"{stored['owner'] or 'The board'} has found out meanwhile: {said}. Answer accordingly."
        )


def answerable(stored: RowMapping, task: RowMapping | None) -> bool:
    """Whether a person may answer for a call that no review asks about."""
    if stored["status"] not in (*operations.OPEN, "unknown") or stored["give_up_at"] is not None:
        return False  # closed; or in the outbox, which is sent until it is confirmed or given up
    if stored["owner"] is not None or task is None or task["status"] in TERMINAL:
        return True
    # A running attempt may have its answer at any moment. And the result of the work is more than a person can say
    # here: once the board has asked to the end, a review asks him for it.
    return bool(task["status"] != Status.RUNNING and stored["phase"] == Phase.ACT)


def _repeated(tx: Connection, stored: RowMapping, verdict: Verdict, actor: Actor) -> bool:
    """True when this actor gave this answer before. Raises DecisionRefused otherwise."""
    answers = [row for row in journal.entries(tx, stored["id"]) if row["kind"] == "resolved"]
    if not answers or stored["resolution"] is None:
        raise DecisionRefused(
            "not_unknown", f"This operation is {stored['status']}; nothing is to be resolved.", [_standing(stored)]
        )
    last = answers[-1]
    by = By(last["actor_kind"], last["actor_name"], last["channel"]).identity
    if by == actor.identity and stored["resolution"] == verdict.verdict:
        return True
    at = time(last["at"])
    raise DecisionRefused(
        "already_decided",
        f"{last['actor_name']} has already answered “{stored['resolution'].replace('_', ' ')}” at {at}.",
        [{"verdict": stored["resolution"], "by": by, "at": at, **_standing(stored)}],
    )


def _standing(stored: RowMapping) -> dict[str, Any]:
    return {"status": stored["status"], "external_reference": stored["external_reference"]}


def _tell(tx: Connection, task: RowMapping, stored: RowMapping, verdict: Verdict, by: By) -> None:
    data = {"operation": str(stored["id"]), "outcome": verdict.verdict}
    record(tx, task["id"], "operation_resolved", by, note=verdict.reason, data=data)
