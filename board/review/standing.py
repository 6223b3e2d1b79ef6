"""What somebody may do about one review as it stands now: the facts that the policy judges, read from the ledger."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, RowMapping, select

from board.access import groups
from board.access.rights import Act, Actor
from board.catalogue.store import Catalogue
from board.review import approvals
from board.review.content import content_hash
from board.review.policy import NotEligible, Question, Reason, verdicts
from board.tasks.models import task_events

# Of one task: how often it is corrected by hand is limited by people's patience.
_CORRECTIONS = 1000
_CHANGED = {"payload", "title"}


def question(connection: Connection, catalogue: Catalogue, task: RowMapping, review: RowMapping) -> Question:
    """Of an open review. An approval of what has changed since counts no more, though no write has said so: the address
    that the action calls may be another one."""
    review_rules = catalogue.version(connection, task["type"], task["type_version"]).spec.review
    several = review_rules.approvals > 1
    same = several and content_hash(connection, catalogue, task) == review["content_hash"]
    return Question(
        Reason(review["reason"]),
        tuple(review_rules.reviewers),
        review_rules.approvals,
        review_rules.four_eyes,
        _makers(connection, task) if several or review_rules.four_eyes else frozenset(),
        approvals.given(connection, review) if same else (),
        review["risk"],
    )


def of(connection: Connection, actor: Actor, asked: Question, channel: str = "") -> tuple[str, ...]:
    """The verdicts that this actor may give by this channel. Raises NotEligible where there is none."""
    return verdicts(actor, _groups(connection, actor, asked), asked, channel)


def _groups(connection: Connection, actor: Actor, asked: Question) -> frozenset[str]:
    return groups.of(connection, actor.identity) if asked.reviewers else frozenset()


def rules(connection: Connection, actor: Actor, asked: Question, verdict: str, type_version: int) -> dict[str, Any]:
    """By what rules this actor may give this verdict, as its event keeps them."""
    return asked.snapshot(type_version, actor, verdict, _groups(connection, actor, asked))


def shown(connection: Connection, actor: Actor, asked: Question) -> dict[str, Any]:
    """The same for a reader: `yours`, and `not_yours`, which says why there are none."""
    try:
        return {"yours": list(of(connection, actor, asked)), "not_yours": None}
    except NotEligible as error:
        return {"yours": [], "not_yours": {"why": error.why, "message": str(error)}}


def may_speak(actor: Actor) -> None:
    """Raise NotEligible unless this actor may write a comment."""
    if not actor.may(Act.REVIEW) and not actor.may(Act.OPERATE):
        raise NotEligible("You may read this but not comment on it; reviewers, operators and owners may.")


def _makers(connection: Connection, task: RowMapping) -> frozenset[str]:
    """Who put the task in, and who has changed what is decided about since."""
    query = select(task_events.c.actor_kind, task_events.c.actor_name, task_events.c.data)
    query = query.where(task_events.c.task == task["id"], task_events.c.kind == "edited").limit(_CORRECTIONS)
    changed = {
        f"{'user' if row.actor_kind == 'person' else row.actor_kind}:{row.actor_name}"
        for row in connection.execute(query)
        if _CHANGED & set(row.data or {})
    }
    return frozenset(changed | ({task["requester"]} if task["requester"] else set()))
