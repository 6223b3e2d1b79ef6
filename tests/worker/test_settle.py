"""What follows from an outcome, as a table: outcome, budget, phase, action and rules in; move and fields out."""

from typing import Any

import pytest

from board.catalogue.spec import RetrySpec, TypeSpec
from board.ports import Cause, ErrorClass, Failure, Later, Outcome, Success, UnknownOutcome
from board.tasks.states import Move
from board.worker.asking import OpenCall, pause, usual_limit
from board.worker.settle import Decision, decide


def spec(**parts: Any) -> TypeSpec:
    handler = {"use": "probe"} | parts.pop("handler", {})
    return TypeSpec.model_validate({"name": "trial", "handler": handler, **parts})


def settled(
    outcome: Outcome,
    *,
    resend: bool = False,
    spent: int = 0,
    phase: str = "work",
    call: OpenCall | None = None,
    **parts: Any,
) -> Decision:
    task: Any = {"phase": phase, "retry_count": spent, "max_retries": 2}
    return decide(spec(**parts), task, outcome, may_resend=resend, call=call)


def failure(error_class: ErrorClass, **fields: Any) -> Failure:
    return Failure(error_class, Cause.NETWORK, "It did not work.", **fields)


ACTION = {"action": {"use": "webhook", "connection": "n8n"}}
ALWAYS = {"review": {"when": "always"}}
TO_PERSON = {"retry": {"on_permanent": "needs_review"}}
T, Q, P, U = ErrorClass.TRANSIENT, ErrorClass.QUOTA, ErrorClass.PERMANENT, ErrorClass.UNKNOWN


@pytest.mark.parametrize(
    ("parts", "phase", "move"),
    [
        ({}, "work", Move.SUCCEED),
        (ACTION, "work", Move.PROCEED),
        (ALWAYS, "work", Move.ASK),
        (ALWAYS | ACTION, "work", Move.ASK),
        (ACTION, "act", Move.SUCCEED),
        (ALWAYS | ACTION, "act", Move.SUCCEED),  # approved already
    ],
)
def test_success(parts: dict[str, Any], phase: str, move: Move) -> None:
    decision = settled(Success(result={"a": 1}), phase=phase, **parts)
    assert (decision.move, decision.operation) == (move, "confirmed")
    assert decision.changes["last_error"] is None
    assert decision.changes.get("has_action", False) is (move is Move.PROCEED)
    if phase == "act":
        assert decision.data == {}  # the answer of a receiver never replaces the result that was approved
    else:
        assert decision.data["result"] == {"a": 1}


@pytest.mark.parametrize("error_class", [T, Q, U])
def test_what_may_pass_is_retried_while_there_is_budget(error_class: ErrorClass) -> None:
    decision = settled(failure(error_class), spent=1)
    assert (decision.move, decision.changes["retry_count"], decision.operation) == (Move.RETRY, 2, "rejected")
    assert decision.wait > 0
    assert decision.changes["last_error"] == decision.note == "It did not work."


@pytest.mark.parametrize(
    ("error_class", "spent", "parts", "move"),
    [
        (T, 2, {}, Move.FAIL),
        (Q, 2, {}, Move.FAIL),
        (U, 2, {}, Move.FAIL),
        (P, 0, {}, Move.FAIL),
        (T, 2, TO_PERSON, Move.ASK),
        (P, 0, TO_PERSON, Move.ASK),
        (P, 0, TO_PERSON | ACTION, Move.ASK),
    ],
)
@pytest.mark.parametrize("phase", ["work", "act"])
def test_what_stays_wrong_fails_or_asks(
    error_class: ErrorClass, spent: int, parts: dict[str, Any], move: Move, phase: str
) -> None:
    decision = settled(failure(error_class, code="E1", http_status=400), spent=spent, phase=phase, **parts)
    assert (decision.move, decision.operation) == (move, "rejected")
    assert "retry_count" not in decision.changes
    assert (decision.details["code"], decision.details["http_status"]) == ("E1", 400)
    assert decision.details.get("reason") == ("permanent_failure" if move is Move.ASK else None)
    assert decision.attempt["outcome"] == "failed"


def open_failure(error_class: ErrorClass, **fields: Any) -> Failure:
    return failure(error_class, open_operation=True, **fields)


@pytest.mark.parametrize(
    ("told", "age", "move"),
    [
        (open_failure(T), 10, Move.RECONCILE),
        (open_failure(U), 359, Move.RECONCILE),
        (open_failure(T), 360, Move.ASK_UNKNOWN),  # the 120 s of the type, three times
        (open_failure(T, open_for=400), 360, Move.RECONCILE),
        (open_failure(T, open_for=400), 406, Move.ASK_UNKNOWN),
        (open_failure(P), 0, Move.ASK_UNKNOWN),
    ],
)
@pytest.mark.parametrize("spent", [0, 2])
@pytest.mark.parametrize("parts", [{}, TO_PERSON])
def test_a_call_that_may_still_go_on_is_asked_about_and_never_called_failed(
    told: Failure, age: float, move: Move, spent: int, parts: dict[str, Any]
) -> None:
    decision = settled(told, spent=spent, call=OpenCall(0, age, usual_limit(120, 2)), **parts)
    assert decision.move is move
    assert decision.operation == ("" if move is Move.RECONCILE else "unknown")  # "": stays open, it is asked about
    assert "retry_count" not in decision.changes
    assert decision.attempt["outcome"] == ("open" if move is Move.RECONCILE else "unknown")


def test_the_pauses_between_two_questions_grow_and_end_with_the_time() -> None:
    spec = RetrySpec.model_validate({"base": "5s", "cap": "60s"})
    told = open_failure(T)

    def paused(asks: int, age: float, told: Failure = told) -> float:
        wait = pause(told, OpenCall(asks, age, 300), spec)
        assert wait is not None
        return wait

    assert 2.5 <= paused(0, 0) <= 5
    assert 5 <= paused(1, 0) <= 10
    assert 30 <= paused(9, 0) <= 60
    assert paused(9, 290) == 10  # the last look is at the very end
    assert paused(0, 0, open_failure(T, retry_after=40)) == 40
    assert pause(told, OpenCall(9, 300, 300), spec) is None


def test_what_is_busy_comes_again_and_spends_nothing() -> None:
    decision = settled(Later("Task T-2 is just doing the same.", 30), spent=2)
    assert (decision.move, decision.wait, decision.operation) == (Move.RECONCILE, 30, "")
    assert "retry_count" not in decision.changes


@pytest.mark.parametrize(
    ("resend", "spent", "move"),
    [(False, 0, Move.ASK_UNKNOWN), (True, 0, Move.RETRY), (True, 1, Move.RETRY), (True, 2, Move.ASK_UNKNOWN)],
)
@pytest.mark.parametrize("phase", ["work", "act"])
def test_unknown_is_sent_again_only_where_that_is_allowed(resend: bool, spent: int, move: Move, phase: str) -> None:
    decision = settled(UnknownOutcome("Who knows."), resend=resend, spent=spent, phase=phase, **TO_PERSON)
    assert (decision.move, decision.operation) == (move, "unknown")
    assert decision.changes["error_class"] == "unknown"
    if move is Move.ASK_UNKNOWN:
        assert decision.details["reason"] == "unknown_outcome"


@pytest.mark.parametrize(
    ("rule", "error", "move"),
    [
        ({"status": 400}, {"http_status": 400}, Move.RETRY),
        ({"status": 400}, {"http_status": 401}, Move.FAIL),
        ({"code": "busy"}, {"code": "busy"}, Move.RETRY),
        ({"code": "busy"}, {"code": "busybody"}, Move.FAIL),
        ({"message": "DID NOT"}, {}, Move.RETRY),
        ({"rule": "built-in"}, {}, Move.RETRY),
        ({"rule": "another"}, {}, Move.FAIL),
        ({"status": 400, "code": "busy"}, {"http_status": 400, "code": "other"}, Move.FAIL),
        ({"status": 400, "code": "busy"}, {"http_status": 400, "code": "busy"}, Move.RETRY),
    ],
)
def test_the_types_own_rules_class_an_error_anew(rule: dict[str, Any], error: dict[str, Any], move: Move) -> None:
    rules = [{"when": rule, "class": "transient"}, {"when": {}, "class": "permanent"}]
    decision = settled(failure(P, rule="built-in", **error), retry={"rules": rules})
    assert decision.move is move
    assert decision.attempt["rule"] == f"retry.rules[{0 if move is Move.RETRY else 1}]"
    assert decision.changes["error_class"] == ("transient" if move is Move.RETRY else "permanent")


def test_without_a_rule_that_fits_the_handlers_class_stays() -> None:
    decision = settled(failure(P, rule="built-in"), retry={"rules": [{"when": {"status": 1}, "class": "quota"}]})
    assert (decision.move, decision.attempt["rule"]) == (Move.FAIL, "built-in")


@pytest.mark.parametrize("ask", ["partial_result", "empty_output", "invalid_output"])
@pytest.mark.parametrize("when", ["never", "rules", "always"])
def test_what_the_handler_asks_is_asked_whatever_the_type_says(ask: Any, when: str) -> None:
    decision = settled(Success(result={}, ask=ask, ask_message="Look."), review={"when": when}, **ACTION)
    assert (decision.move, decision.details["reason"], decision.note) == (Move.ASK, ask, "Look.")


@pytest.mark.parametrize(("result", "fits"), [({"label": "x"}, True), ({}, False), ("label", False), (None, False)])
def test_the_output_schema_is_checked_also_under_never(result: Any, fits: bool) -> None:
    schema = {"type": "object", "required": ["label"]}
    decision = settled(Success(result=result), handler={"output_schema": schema}, review={"when": "never"})
    if fits:
        assert decision.move is Move.SUCCEED
    else:
        assert (decision.move, decision.details["reason"]) == (Move.ASK, "invalid_output")
        assert decision.data["result"] == result  # shown to the person as it came


CONFIDENCE = {"judgement": {"confidence": "c", "risks": "risks"}}


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ({"c": 0.9}, None),
        ({"c": 0.8}, None),
        ({"c": 0.79}, "low_confidence"),
        ({"c": "0.9"}, None),
        ({"c": " 0.5 "}, "low_confidence"),
        ({}, "low_confidence"),
        ({"c": None}, "low_confidence"),
        ({"c": True}, "low_confidence"),
        ({"c": "high"}, "low_confidence"),
        ({"c": "90%"}, "low_confidence"),
        ({"c": 90}, "low_confidence"),
        ({"c": -1}, "low_confidence"),
        ({"c": 10**400}, "low_confidence"),
        ({"c": float("nan")}, "low_confidence"),
        ({"c": float("inf")}, "low_confidence"),
        ({"c": "nan"}, "low_confidence"),
        ({"c": [0.9]}, "low_confidence"),
        ("text", "low_confidence"),
        (None, "low_confidence"),
        ({"c": 1, "risks": ["legal"]}, "risk"),
        ({"c": 1, "risks": "legal"}, "risk"),
        ({"c": 1, "risks": {"legal": 1}}, "risk"),
        ({"c": 1, "risks": []}, None),
        ({"c": 1, "risks": ["", "  "]}, None),
        ({"c": 1, "label": "complaint"}, "output_rule"),
        ({"c": 1, "label": "praise"}, None),
        ({"c": 1, "self": 1, "label": "complaint"}, "output_rule"),  # no name in an output switches a rule off
        ({"c": 1, "amount": 5}, None),
        ({"c": 1, "amount": 50}, "output_rule"),
        ({"c": 1, "amount": "50"}, "output_rule"),  # cannot be compared: a person looks
    ],
)
def test_rules_on_whatever_a_model_writes(output: Any, reason: str | None) -> None:
    rules = [
        {"confidence_below": 0.8},
        {"risks": "any"},
        {"output": "label == 'complaint'"},
        {"output": "amount is defined and amount > 10"},
    ]
    decision = settled(Success(result=output), handler=CONFIDENCE, review={"when": "rules", "rules": rules})
    assert decision.details.get("reason") == reason
    assert decision.move is (Move.SUCCEED if reason is None else Move.ASK)


def test_never_silences_the_types_rules() -> None:
    review = {"when": "never", "rules": [{"confidence_below": 1}, {"output": "true"}]}
    assert settled(Success(result={}), handler=CONFIDENCE, review=review).move is Move.SUCCEED


def test_the_handlers_own_judgement_goes_before_the_paths() -> None:
    rules = {"when": "rules", "rules": [{"confidence_below": 0.8}]}
    outcome = Success(result={"c": 0.1}, judgement={"confidence": 0.95, "verdict": "APPROVE "})
    decision = settled(outcome, handler=CONFIDENCE, review=rules)
    assert decision.move is Move.SUCCEED
    assert decision.data["judgement"]["verdict"] == "approve"


def test_none_goes_straight_to_a_person() -> None:
    decision = settled(Success(), handler={"use": "none"})
    assert (decision.move, decision.details["reason"]) == (Move.ASK, "direct")
