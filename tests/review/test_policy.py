"""Who may decide: every rule, whatever door the answer comes in by; and when a person is asked by chance."""

from itertools import product

import pytest

from board.access.rights import Actor, key_actor, person_actor
from board.catalogue.spec import TypeSpec
from board.ports import Success
from board.review.policy import LINK, VERDICTS, Ask, NotEligible, Question, Reason, asks, verdicts

LI = person_actor("li@example.org", "reviewer")
OWNER = person_actor("owner@example.org", "owner")
VIEWER = person_actor("viewer@example.org", "viewer")
KEY = key_actor("n8n", ["review"])
NAMED = [
    # reviewers, who, his groups, may
    ((), LI, frozenset(), True),
    (("li@example.org",), LI, frozenset(), True),
    (("LI@example.org",), LI, frozenset(), True),
    (("user:li@example.org",), LI, frozenset(), True),
    (("sales",), LI, frozenset({"sales"}), True),
    (("sales",), LI, frozenset({"finance"}), False),
    (("sales", "li@example.org"), LI, frozenset(), True),
    (("other@example.org",), LI, frozenset(), False),
    (("key:n8n",), KEY, frozenset(), True),
    (("n8n",), KEY, frozenset(), False),
    (("key:other",), KEY, frozenset(), False),
    (("sales",), KEY, frozenset({"sales"}), True),
    (("sales",), OWNER, frozenset(), False),  # the list holds for everybody
    (("viewer@example.org",), VIEWER, frozenset(), False),  # it names, but gives no role
    ((), VIEWER, frozenset(), False),
]


def why(actor: Actor, question: Question, groups: frozenset[str] = frozenset()) -> str | None:
    try:
        assert verdicts(actor, groups, question) == VERDICTS[question.reason]
    except NotEligible as error:
        return error.why
    return None


@pytest.mark.parametrize(("reviewers", "actor", "groups", "may"), NAMED)
def test_whom_the_type_names(reviewers: tuple[str, ...], actor: Actor, groups: frozenset[str], may: bool) -> None:
    found = why(actor, Question(Reason.POLICY, reviewers), groups)
    assert (found is None) is may
    assert may or found == ("role" if actor is VIEWER else "reviewers")


@pytest.mark.parametrize("actor", [LI, OWNER, KEY], ids=lambda actor: actor.identity)
def test_every_combination_of_eyes_and_approvals(actor: Actor) -> None:
    for four_eyes, needed, made, approved in product((False, True), (1, 2, 3), (False, True), (False, True)):
        question = Question(
            Reason.POLICY,
            (),
            needed,
            four_eyes,
            frozenset({actor.identity} if made else ()),
            (actor.identity,) if approved else (),
        )
        apart = four_eyes or needed > 1
        expected = "four_eyes" if apart and made else "approved" if approved else None
        assert why(actor, question) == expected, (four_eyes, needed, made, approved)


@pytest.mark.parametrize("reason", list(Reason))
def test_what_is_offered_depends_on_why_it_was_opened(reason: Reason) -> None:
    assert verdicts(LI, frozenset(), Question(reason)) == VERDICTS[reason]


@pytest.mark.parametrize("reason", list(Reason))
def test_a_link_is_enough_for_the_usual_answers_at_low_risk_only(reason: Reason) -> None:
    unusual = reason in (Reason.UNKNOWN_OUTCOME, Reason.INPUT_NEEDED)
    for risk in ("low", "medium", "high"):
        question = Question(reason, risk=risk)
        assert verdicts(LI, frozenset(), question, "web") == VERDICTS[reason]
        if risk == "low" and not unusual:
            assert verdicts(LI, frozenset(), question, LINK) == VERDICTS[reason]
            continue
        with pytest.raises(NotEligible) as error:
            verdicts(LI, frozenset(), question, LINK)
        assert error.value.why == "sign_in"


def by_chance(dice: float, **review: object) -> Ask | None:
    spec = TypeSpec.model_validate({"name": "trial", "handler": {"use": "echo"}, "review": review})
    return asks(spec, Success({}), {}, dice=lambda: dice)


def test_a_sample_is_taken_of_the_rest() -> None:
    assert by_chance(0.049, sample=5) == Ask(Reason.SAMPLE, "One of the 5 % that are looked at.")
    assert by_chance(0.05, sample=5) is None
    assert by_chance(0.0) is None
    assert by_chance(0.999999, sample=100) is not None
    found = by_chance(0.0, sample=100, when="rules", rules=[{"confidence_below": 0.5}])
    assert found is not None
    assert found.reason is Reason.LOW_CONFIDENCE  # the rules come first


def test_a_worker_may_ask_for_no_review_but_not_for_none_of_a_type_that_is_always_reviewed() -> None:
    spec = TypeSpec.model_validate({"name": "trial", "handler": {"use": "echo"}, "review": {"sample": 100}})
    assert asks(spec, Success({}), {}, "auto") is not None
    assert asks(spec, Success({}), {}, "never") is None


def test_the_sample_is_about_as_large_as_it_says() -> None:
    spec = TypeSpec.model_validate({"name": "trial", "handler": {"use": "echo"}, "review": {"sample": 20}})
    taken = sum(asks(spec, Success({}), {}) is not None for _ in range(5000))
    assert 800 < taken < 1200  # 1000 is expected; seven standard deviations to each side
