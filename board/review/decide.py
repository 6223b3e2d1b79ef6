"""A person's decision: checked against what was shown, made once, answered alike when it is repeated."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, RowMapping, select, update

from board.access.rights import Actor
from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue
from board.db.clock import now, read_now
from board.effects import callbacks
from board.review import approvals, edits, forms, standing, unknown
from board.review.content import content_hash
from board.review.models import reviews
from board.review.policy import NotEligible, Question, may_decide
from board.review.verdict import DecisionRefused, ReasonClass, Verdict, check, is_repeat, refuse_held, too_late
from board.review.visits import due_from_now, remind_from_now
from board.tasks.history import TIMER, By, record
from board.tasks.ledger import Ledger
from board.tasks.models import attempts, tasks
from board.tasks.states import IllegalMove, Move
from board.tasks.view import data_of, time

# Who decides where nobody does: no person, and with no rights to anything else.
CLOCK = Actor(TIMER.kind, TIMER.name, frozenset())

__all__ = ["DecisionRefused", "Decisions", "ReasonClass", "Verdict"]


class Decisions:
    def __init__(self, ledger: Ledger, catalogue: Catalogue) -> None:
        self._ledger = ledger
        self._catalogue = catalogue

    def decide(self, tx: Connection, review_id: int, verdict: Verdict, actor: Actor, channel: str) -> bool:
        """Make the decision. True when it was made before by the same actor and is only answered again.

        Raises NotEligible, DecisionRefused.
        """
        may_decide(actor)
        task, review = self._locked(tx, review_id)
        if review["status"] != "open":
            if is_repeat(tx, review, verdict, actor):
                return True
            raise too_late(review, task)
        spec = self._catalogue.version(tx, task["type"], task["type_version"]).spec
        asked = standing.question(tx, self._catalogue, task, review)
        if verdict.verdict == "approve" and actor.identity in asked.approved:
            return True
        content = content_hash(tx, self._catalogue, task)
        check(review, verdict, standing.of(tx, actor, asked, channel), content)
        refuse_held(tx, review, actor)
        if verdict.verdict == "approve" and asked.needed > 1:
            self._refuse_edits(verdict, asked)
            review = self._renewed(tx, review, content)
            approvals.give(tx, review, actor.identity)
            if len(asked.approved) + 1 < asked.needed:
                self._count(tx, task, review, verdict, asked, actor, channel)
                return False
        edited = self._edited(tx, task, review, verdict, spec) if verdict.edits else None
        grace = spec.review.grace if verdict.verdict in ("approve", "reject") else 0.0
        self._mark(tx, review, verdict, actor, channel, grace, content)
        self._move(tx, task, review, verdict, actor, channel, spec, grace, edited, asked)
        return False

    def undo(self, tx: Connection, review_id: int, actor: Actor, channel: str) -> None:
        """Take an approval or rejection back inside its grace time, before anything was sent. The same actor only."""
        may_decide(actor)
        task, review = self._locked(tx, review_id)
        if review["status"] == "open" and actor.identity in approvals.given(tx, review):
            approvals.take_back(tx, review, actor.identity)
            details = {"review": str(review["id"]), "version": review["version"]}
            record(tx, task["id"], "approval_taken_back", actor.by(channel), data=details)
            return
        if review["status"] != "decided" or review["decider"] != actor.identity:
            raise DecisionRefused("cannot_undo", "Only your own decision can be undone, and only once.")
        if review["undo_until"] is None or review["undo_until"] <= read_now(tx):
            raise DecisionRefused("cannot_undo", "The time to undo this decision is over.")
        if callbacks.sent_since(tx, task["id"], review["decided_at"]):
            raise DecisionRefused("cannot_undo", "Something was already sent, so the decision stands.")
        spec = self._catalogue.version(tx, task["type"], task["type_version"]).spec
        move = Move.UNDO_APPROVE if review["verdict"] == "approve" else Move.UNDO_REJECT
        changes = {"has_action": False, "ready_at": now()}
        # What was changed with the approval is as the work had left it.
        before = {"result": review["data"]["former"]} if (review["data"] or {}).get("edits") else {}
        try:
            self._ledger.move(tx, task, move, actor.by(channel), changes=changes, data={"decision": None} | before)
        except IllegalMove as error:
            raise DecisionRefused("cannot_undo", "What follows from the decision has already begun.") from error
        callbacks.take_back(tx, task["id"], review["decided_at"])
        approvals.reopened(tx, review, actor.identity)
        tx.execute(
            update(reviews)
            .where(reviews.c.id == review["id"])
            .values(
                status="open",
                version=reviews.c.version + 1,  # a late repeat of the undone decision must not count again
                verdict=None,
                decided_version=None,
                claimed_by=None,
                claimed_until=None,
                snoozed_until=None,
                decided_at=None,
                decider_kind=None,
                decider=None,
                undo_until=None,
                due_at=due_from_now(spec) if spec.review.due else review["due_at"],
                remind_at=remind_from_now(spec),
                lane=task["lane"],
                **({"data": None, "edited": False} if before else {}),
            )
        )

    def approve_by_clock(self, tx: Connection, task: RowMapping, review: RowMapping, spec: TypeSpec, note: str) -> None:
        """The type says that a review which nobody answers in time is approved."""
        verdict = Verdict("approve", reason=note)
        content = content_hash(tx, self._catalogue, task)
        self._mark(tx, review, verdict, CLOCK, TIMER.channel, spec.review.grace, content)
        self._move(tx, task, review, verdict, CLOCK, TIMER.channel, spec, spec.review.grace, None, None)

    def require(self, tx: Connection, task: RowMapping, review: RowMapping, actor: Actor) -> None:
        """Raise NotEligible unless this actor may decide the open review."""
        standing.of(tx, actor, standing.question(tx, self._catalogue, task, review))

    def apart(self, connection: Connection, review: RowMapping, actor: Actor) -> str | None:
        """Why this actor does not approve the open review together with others: not_eligible, or several (it takes
        more than one approval)."""
        task = connection.execute(select(tasks).where(tasks.c.id == review["task"])).mappings().one()
        spec = self._catalogue.version(connection, task["type"], task["type_version"]).spec
        if spec.review.approvals > 1:
            return "several"
        try:
            standing.of(connection, actor, standing.question(connection, self._catalogue, task, review))
        except NotEligible:
            return "not_eligible"
        return None

    def content(self, connection: Connection, task_id: int) -> str:
        """The hash of what a decision about this task (its internal id) would be about now."""
        task = connection.execute(select(tasks).where(tasks.c.id == task_id)).mappings().one()
        return content_hash(connection, self._catalogue, task)

    # -- parts ----------------------------------------------------------------------------------------------------

    def _locked(self, tx: Connection, review_id: int) -> tuple[RowMapping, RowMapping]:
        task_id = tx.execute(select(reviews.c.task).where(reviews.c.id == review_id)).scalar()
        if task_id is None:
            raise DecisionRefused("not_found", "There is no such review.")
        task = self._ledger.lock(tx, task_id)  # the task first, everywhere: no two transactions wait for each other
        query = select(reviews).where(reviews.c.id == review_id)
        if tx.dialect.name == "postgresql":
            query = query.with_for_update()
        return task, tx.execute(query).mappings().one()

    @staticmethod
    def _refuse_edits(verdict: Verdict, asked: Question) -> None:
        if verdict.edits:
            text = f"It takes {asked.needed} approvals of the same content, so none of them changes it; send it back."
            raise DecisionRefused("not_editable", text, [{"field": "edits"}])

    @staticmethod
    def _renewed(tx: Connection, review: RowMapping, content: str) -> RowMapping:
        """The review as one about this content; with another one before, what was approved of that counts no more."""
        if review["content_hash"] == content:
            return review
        values = {"version": reviews.c.version + 1, "content_hash": content}
        renewed = update(reviews).where(reviews.c.id == review["id"]).values(**values).returning(reviews)
        return tx.execute(renewed).mappings().one()

    @staticmethod
    def _count(
        tx: Connection,
        task: RowMapping,
        review: RowMapping,
        verdict: Verdict,
        asked: Question,
        actor: Actor,
        channel: str,
    ) -> None:
        details: dict[str, Any] = {"review": str(review["id"]), "version": review["version"]}
        details |= {"given": len(asked.approved) + 1, "needed": asked.needed}
        details["policy"] = standing.rules(tx, actor, asked, verdict.verdict, task["type_version"])
        record(tx, task["id"], "approval_given", actor.by(channel), note=verdict.reason, data=details)

    @staticmethod
    def _edited(
        tx: Connection, task: RowMapping, review: RowMapping, verdict: Verdict, spec: TypeSpec
    ) -> dict[str, Any]:
        """The output with the reviewer's changes, which the review keeps beside the output as it was."""
        if verdict.verdict != "approve":
            raise DecisionRefused("not_editable", "Only an approval takes edits.", [{"field": "edits"}])
        assert verdict.edits is not None
        former = data_of(tx, task["id"])["result"]
        try:
            result = edits.merged(spec, former, verdict.edits)
        except edits.BadEdit as error:
            raise DecisionRefused(error.code, str(error), [{"field": error.field}]) from error
        kept = {"edits": verdict.edits, "former": former}
        tx.execute(update(reviews).where(reviews.c.id == review["id"]).values(data=kept, edited=True))
        return result

    @staticmethod
    def _mark(
        tx: Connection, review: RowMapping, verdict: Verdict, actor: Actor, channel: str, grace: float, content: str
    ) -> None:
        tx.execute(
            update(reviews)
            .where(reviews.c.id == review["id"], reviews.c.status == "open", reviews.c.version == review["version"])
            .values(
                status="decided",
                verdict=verdict.verdict,
                decided_version=review["version"],
                content_hash=content,
                decided_at=now(),
                decider_kind=actor.kind,
                decider=actor.identity,
                channel=channel,
                instruction=verdict.instruction,
                decision_reason=verdict.reason,
                reason_class=verdict.reason_class,
                idempotency_key=verdict.idempotency_key,
                undo_until=now(grace) if grace > 0 else None,
            )
        )

    def _move(
        self,
        tx: Connection,
        task: RowMapping,
        review: RowMapping,
        verdict: Verdict,
        actor: Actor,
        channel: str,
        spec: TypeSpec,
        grace: float,
        edited: dict[str, Any] | None,
        asked: Question | None,
    ) -> None:
        """asked: the rules under which it was decided; None where the clock has decided."""
        by = actor.by(channel)
        details: dict[str, Any] = {"review": str(review["id"]), "version": review["version"]}
        if asked is not None:
            details["policy"] = standing.rules(tx, actor, asked, verdict.verdict, task["type_version"])
        judgement = data_of(tx, task["id"])["judgement"] or {}
        if judgement.get("confidence") is not None:  # kept with the decision, so that reports can compare the two
            details["confidence"] = judgement["confidence"]
        decision = {
            "verdict": verdict.verdict,
            "by": actor.identity,
            "at": time(read_now(tx)),
            "reason": verdict.reason,
            "reason_class": verdict.reason_class,
            "instruction": verdict.instruction,
            "round": review["round"],
        }
        note = verdict.instruction or verdict.reason
        match verdict.verdict:
            case "approve":
                changes = {"has_action": spec.action is not None, "ready_at": now(grace), "retry_count": 0}
                data: dict[str, Any] = {"decision": decision}
                if edited is not None:
                    data["result"] = edited
                    details["edits"] = edits.differences(data_of(tx, task["id"])["result"], verdict.edits or {})
                approved = self._ledger.move(
                    tx, task, Move.APPROVE, by, changes=changes, data=data, note=note, details=details
                )
                if spec.action is None and grace == 0:  # nothing is left to wait for
                    self._ledger.move(tx, approved.task, Move.FINISH, TIMER)
            case "revise":
                self._revise(tx, task, verdict, by, spec, decision, details)
            case "answer":
                forms.keep(tx, review, verdict)
                changes = {"ready_at": now()}
                details |= {"action": verdict.action}
                self._ledger.move(tx, task, Move.ANSWER, by, changes=changes, note=verdict.reason, details=details)
            case "reject":
                self._ledger.move(
                    tx,
                    task,
                    Move.REJECT,
                    by,
                    data={"decision": decision},
                    note=note,
                    details=details | {"reason_class": verdict.reason_class, "leaves_in": grace},
                )
            case _:
                unknown.answer(tx, self._ledger, task, review, verdict, by, spec, details)

    def _revise(
        self,
        tx: Connection,
        task: RowMapping,
        verdict: Verdict,
        by: By,
        spec: TypeSpec,
        decision: dict[str, Any],
        details: dict[str, Any],
    ) -> None:
        if task["round"] >= spec.review.max_rounds:
            raise DecisionRefused(
                "rounds_spent",
                f"This task has had its {spec.review.max_rounds} rounds (max_rounds). Approve or reject it.",
            )
        former = data_of(tx, task["id"])["result"]
        tx.execute(
            update(attempts)
            .where(attempts.c.task == task["id"], attempts.c.number == task["lease_token"])
            .values(output=former)
        )
        self._ledger.move(
            tx,
            task,
            Move.REVISE,
            by,
            changes={"round": task["round"] + 1, "ready_at": now(), "retry_count": 0, "has_action": False},
            data={"instruction": verdict.instruction, "former_output": former, "decision": decision},
            note=verdict.instruction,
            details=details,
        )
