"""What a decision says, and whether it can be made about a review as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping

from board.access.rights import Act, Actor
from board.db.clock import read_now
from board.review import approvals, forms
from board.tasks.view import time

ReasonClass = Literal["wrong", "incomplete", "policy", "duplicate", "other"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided. version and content_hash: what the person saw; None only by the shorthand on the task."""

    verdict: str
    version: int | None = None
    content_hash: str | None = None
    instruction: str | None = None
    reason: str | None = None
    reason_class: ReasonClass | None = None
    idempotency_key: str | None = None
    edits: dict[str, Any] | None = None  # approve: what takes the place of these parts of the output
    reference: str | None = None  # unknown outcome: the outside system's id, where the person found it
    result: Any = None  # unknown outcome: the result, where the person found it
    action: str | None = None  # input needed: which of the form's actions
    inputs: dict[str, Any] | None = None  # input needed: the form's fields


class DecisionRefused(Exception):
    """The decision cannot be made. code is the contract's; details say who, when and what, or what has changed."""

    def __init__(self, code: str, message: str, details: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(message)
        self.code, self.details = code, list(details)


def is_repeat(tx: Connection, review: RowMapping, verdict: Verdict, actor: Actor) -> bool:
    decided = review["status"] == "decided" and review["verdict"] == verdict.verdict
    return (
        decided
        and (review["decider"] == actor.identity or actor.identity in approvals.given(tx, review))
        and verdict.version in (None, review["decided_version"])
        and (verdict.edits or None) == (review["data"] or {}).get("edits")
    )


def too_late(review: RowMapping, task: RowMapping) -> DecisionRefused:
    if review["status"] == "decided":
        who = review["decider"].split(":", 1)[1]
        details = {"verdict": review["verdict"], "by": review["decider"], "at": time(review["decided_at"])}
        said = {"approve": "approved", "revise": "sent back", "reject": "rejected"}.get(review["verdict"], "decided")
        message = f"{who} has already {said} this at {time(review['decided_at'])}."
        return DecisionRefused("already_decided", message, [details | {"status": task["status"]}])
    return DecisionRefused(
        "already_decided",
        f"This review was closed without a decision; the task is {task['status']}.",
        [{"verdict": None, "by": None, "at": time(review["decided_at"]), "status": task["status"]}],
    )


def holder(connection: Connection, review: RowMapping) -> str | None:
    """Who has taken the review, and still has it."""
    if review["claimed_by"] is None or review["claimed_until"] <= read_now(connection):
        return None
    return str(review["claimed_by"])


def refuse_held(connection: Connection, review: RowMapping, actor: Actor) -> None:
    """What a colleague has taken is not decided meanwhile; an owner may all the same."""
    other = holder(connection, review)
    if other not in (None, actor.identity) and not actor.may(Act.ADMIN):
        until = time(review["claimed_until"])
        text = f"{str(other).split(':', 1)[1]} has taken this until {until}. Take it over, or wait."
        raise DecisionRefused("claimed", text, [{"by": other, "until": until}])


def check(review: RowMapping, verdict: Verdict, offered: Sequence[str], content: str) -> None:
    """content: the hash of what the review is about now. The address that an action calls may have changed meanwhile,
    which no write of the task or the review tells."""
    if verdict.verdict not in offered:
        raise DecisionRefused(
            "verdict_not_offered", f"“{verdict.verdict}” is not offered here; possible are: {', '.join(offered)}."
        )
    changed = verdict.version not in (None, review["version"])
    if changed or verdict.content_hash not in (None, content):
        raise DecisionRefused(
            "review_changed",
            "What you decided about has changed meanwhile. Look at it again, then decide.",
            [{"version": review["version"], "content_hash": content}],
        )
    if verdict.verdict == "answer" and (form := forms.form_of(review)) is not None:
        try:
            forms.check(form, verdict.action, verdict.inputs or {})
        except forms.BadAnswer as error:
            raise DecisionRefused("answer_does_not_fit", str(error), [{"field": error.field}]) from error
    if verdict.verdict == "revise" and not (verdict.instruction or "").strip():
        raise DecisionRefused("instruction_missing", "Say in `instruction` what should be done differently.")
