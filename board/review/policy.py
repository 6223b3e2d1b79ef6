"""The rules of review, in one place: when a person is asked, what he may answer, and who may answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from board import templating
from board.access.rights import Act, Actor
from board.catalogue.spec import TypeSpec
from board.ports import Json, Success


class Reason(StrEnum):
    """Why a review was opened."""

    POLICY = "policy"
    SAMPLE = "sample"
    LOW_CONFIDENCE = "low_confidence"
    RISK = "risk"
    OUTPUT_RULE = "output_rule"
    PARTIAL_RESULT = "partial_result"
    EMPTY_OUTPUT = "empty_output"
    INVALID_OUTPUT = "invalid_output"
    PERMANENT_FAILURE = "permanent_failure"
    UNKNOWN_OUTCOME = "unknown_outcome"
    INPUT_NEEDED = "input_needed"
    DIRECT = "direct"


# What an outside worker may wish for with its result: a review in any case, or none for the type's rules and sample.
Wish = Literal["auto", "always", "never"]

_USUAL = ("approve", "revise", "reject")
VERDICTS: dict[Reason, tuple[str, ...]] = {
    Reason.POLICY: _USUAL,
    Reason.SAMPLE: _USUAL,
    Reason.LOW_CONFIDENCE: _USUAL,
    Reason.RISK: _USUAL,
    Reason.OUTPUT_RULE: _USUAL,
    Reason.PARTIAL_RESULT: _USUAL,
    Reason.EMPTY_OUTPUT: _USUAL,
    Reason.INVALID_OUTPUT: _USUAL,
    Reason.PERMANENT_FAILURE: ("revise", "reject"),
    Reason.UNKNOWN_OUTCOME: ("happened", "not_happened", "drop"),
    Reason.INPUT_NEEDED: ("answer", "reject"),
    Reason.DIRECT: ("approve", "reject"),
}

# The channel of what comes in by a review link, which is all that its holder shows of himself.
LINK = "link"


@dataclass(frozen=True, slots=True)
class Ask:
    reason: Reason
    message: str


class NotEligible(Exception):
    """This actor may not decide here. The text says who may.

    why: role, reviewers (not one of those whom the type names), four_eyes (has put the task in, or changed it),
    approved (has given one of several approvals) or sign_in (a link is not enough for this one).
    """

    def __init__(self, message: str, why: str = "role", reviewers: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.why, self.reviewers = why, reviewers


@dataclass(frozen=True, slots=True)
class Question:
    """What the rights on one open review depend on.

    makers: the identities of those who had a hand in what is decided about. approved: of those whose approvals count.
    """

    reason: Reason
    reviewers: tuple[str, ...] = ()
    needed: int = 1
    four_eyes: bool = False
    makers: frozenset[str] = frozenset()
    approved: tuple[str, ...] = ()
    risk: str = "low"

    @property
    def apart(self) -> bool:
        """Whether nobody may have two parts in it."""
        return self.four_eyes or self.needed > 1

    def snapshot(self, type_version: int, actor: Actor, verdict: str, groups: frozenset[str]) -> dict[str, Any]:
        """The rules as they were, for the history: what a decision is measured by later.

        given: approvals of this content with this one. role: of a person. named: which of the reviewers he is by.
        """
        return {
            "reason": self.reason.value,
            "risk": self.risk,
            "reviewers": list(self.reviewers),
            "approvals": self.needed,
            "given": len(self.approved) + (verdict == "approve"),
            "four_eyes": self.four_eyes,
            "type_version": type_version,
            "role": actor.role,
            "named": next((name for name in self.reviewers if _is_named(name, actor, groups)), None),
        }


def verdicts(actor: Actor, groups: frozenset[str], question: Question, channel: str = "") -> tuple[str, ...]:
    """What this actor may answer here: the one place that says so, whatever way the answer comes in.

    groups: the names of those that the actor is in. channel: only LINK makes a difference. Raises NotEligible where he
    may answer nothing.
    """
    may_decide(actor)
    named = question.reviewers
    if named and not any(_is_named(name, actor, groups) for name in named):
        raise NotEligible(f"Only {', '.join(named)} may decide this.", "reviewers", named)
    if question.apart and actor.identity in question.makers:
        raise NotEligible("Whoever put a task in or changed it does not decide about it; ask a colleague.", "four_eyes")
    if actor.identity in question.approved:
        raise NotEligible("You have approved this; another person has to, as well.", "approved")
    if channel == LINK and not link_suffices(question.reason, question.risk):
        raise NotEligible("A link is not enough to decide this; sign in.", "sign_in")
    return VERDICTS[question.reason]


def link_suffices(reason: Reason, risk: str) -> bool:
    """Whether a link alone is enough: links are forwarded and lie in mailboxes, so only for the usual answers to what
    can do little harm."""
    return risk == "low" and set(VERDICTS[reason]) <= set(_USUAL)


def _is_named(name: str, actor: Actor, groups: frozenset[str]) -> bool:
    """name: a group, a mail address, or key:NAME."""
    if "@" in name:
        return actor.kind == "person" and actor.name.casefold() == name.removeprefix("user:").casefold()
    return name == actor.identity or name in groups


def asks(
    spec: TypeSpec,
    success: Success,
    judgement: dict[str, Any],
    wish: Wish = "auto",
    dice: Callable[[], float] = random.random,
) -> Ask | None:
    """Whether a person must look at this success before anything follows from it.

    What the handler asks for itself (partial, empty, invalid output) is always asked; `review.when: never` silences
    the type's own rules only. wish: `never` does the same for one result, and for the sample, but not where the type
    is always reviewed. dice: a number from 0 up to 1, for the sample; nothing in the task can influence it.
    """
    if success.ask is not None:
        return Ask(Reason(success.ask), success.ask_message or "The output needs a look.")
    if spec.handler.use == "none":
        return Ask(Reason.DIRECT, "This type goes straight to a person.")
    if spec.review_when == "always":
        return Ask(Reason.POLICY, "This type is always reviewed.")
    if wish == "always":
        return Ask(Reason.POLICY, "The worker asked for a review.")
    if spec.review_when == "rules" and wish != "never":
        for rule in spec.review.rules:
            if found := _broken(rule.confidence_below, rule.risks, rule.output, judgement, success.result):
                return found
    if wish != "never" and spec.review.sample and dice() * 100 < spec.review.sample:
        return Ask(Reason.SAMPLE, f"One of the {spec.review.sample:g} % that are looked at.")
    return None


def may_decide(actor: Actor) -> None:
    """Raise NotEligible unless this actor may decide reviews."""
    if not actor.may(Act.REVIEW):
        raise NotEligible("You may read this review but not decide it; reviewers, operators and owners may.")


def _broken(
    confidence_below: float | None, risks: str | None, output: str | None, judgement: dict[str, Any], result: Json
) -> Ask | None:
    if confidence_below is not None:
        confidence = judgement.get("confidence")
        if confidence is None:  # a missing confidence counts as below
            return Ask(Reason.LOW_CONFIDENCE, "The output states no confidence.")
        if confidence < confidence_below:
            return Ask(Reason.LOW_CONFIDENCE, f"Confidence {confidence:g} is below {confidence_below:g}.")
    if risks and judgement.get("risks"):
        return Ask(Reason.RISK, f"The output names {len(judgement['risks'])} risk(s).")
    if output is not None:
        fields = result if isinstance(result, dict) else {"result": result}
        try:
            holds = templating.holds(output, fields)
        except templating.TemplateProblem:  # a number that came as text, say: whoever wrote it must not slip through
            return Ask(Reason.OUTPUT_RULE, f"The rule “{output}” cannot be checked on this output.")
        if holds:
            return Ask(Reason.OUTPUT_RULE, f"The output fits the rule “{output}”.")
    return None
