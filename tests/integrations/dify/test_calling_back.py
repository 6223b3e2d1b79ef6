"""What comes by a callback is read as the outputs of a run are."""

from __future__ import annotations

from typing import Any

import pytest

from board.ports import CalledBack, ErrorClass, Failure, Success
from integrations.dify.calling_back import outcome_of_call
from tests.integrations.dify.attempt import LABELLED
from tests.integrations.dify.doubles import NotedJob

JOB = NotedJob(None, {}, output_schema=LABELLED)


@pytest.mark.parametrize(
    ("result", "kept", "ask"),
    [
        ({"label": "hot"}, {"label": "hot"}, None),
        ('Here:\n```json\n{"label": "hot"}\n```', {"label": "hot"}, None),
        ({"text": '{"label": "hot"}'}, {"label": "hot"}, None),
        ({"text": "I cannot say."}, {"text": "I cannot say."}, "invalid_output"),
        ({"text": " "}, {"text": " "}, "empty_output"),
        (None, None, "empty_output"),
    ],
    ids=["object", "fenced", "in a field", "other", "blank", "nothing"],
)
def test_a_result(result: Any, kept: Any, ask: str | None) -> None:
    called = CalledBack(True, result, {"confidence": 0.9}, reference="of the flow")
    outcome = outcome_of_call(called, JOB, "run-1")
    assert isinstance(outcome, Success)
    assert (outcome.result, outcome.ask) == (kept, ask)
    assert (outcome.judgement, outcome.reference) == ({"confidence": 0.9}, "run-1")


def test_its_own_reference_counts_where_no_run_is_known() -> None:
    outcome = outcome_of_call(CalledBack(True, {"label": "x"}, reference="of the flow"), JOB, None)
    assert isinstance(outcome, Success)
    assert outcome.reference == "of the flow"


def test_a_failure() -> None:
    called = CalledBack(False, message="No such company.", error_class=ErrorClass.PERMANENT, code="E7")
    outcome = outcome_of_call(called, JOB, "run-1")
    assert isinstance(outcome, Failure)
    assert (outcome.message, outcome.error_class, outcome.code) == ("No such company.", ErrorClass.PERMANENT, "E7")
