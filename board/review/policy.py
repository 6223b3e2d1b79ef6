"""The rules of review, in one place: when a person is asked, what he may answer, and who may answer."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Ask:
    reason: Reason
    message: str


class NotEligible(Exception):
    """This actor may not decide here. The text says who may."""


def asks(spec: TypeSpec, success: Success, judgement: dict[str, Any], wish: Wish = "auto") -> Ask | None:
    """Whether a person must look at this success before anything follows from it.

    What the handler asks for itself (partial, empty, invalid output) is always asked; `review.when: never` silences
    the type's own rules only. wish: `never` does the same for one result, but not where the type is always reviewed.
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
