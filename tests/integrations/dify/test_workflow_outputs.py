"""What a model answers, and what is made of it; against the stand-in."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from board.ports import (
    ErrorClass,
    Failure,
    Success,
)
from tests.integrations.dify.attempt import LABELLED, run
from tests.integrations.dify.conftest import RUN_ID, Standin


@pytest.mark.parametrize(
    ("fault", "schema", "ask"),
    [
        ("text", LABELLED, None),
        ("fenced", LABELLED, None),
        ("fenced_no_label", LABELLED, None),
        ("think", LABELLED, None),
        ("lone_think", LABELLED, None),
        ("citation", LABELLED, None),
        ("invalid_json", LABELLED, "invalid_output"),
        ("refusal", LABELLED, "invalid_output"),
        ("missing_field", LABELLED, "invalid_output"),
        ("refusal", None, None),
        ("empty", None, "empty_output"),
        ("nul", LABELLED, None),
        ("surrogate", LABELLED, None),
    ],
)
async def test_the_ways_in_which_a_model_answers(
    standin: Standin, fault: str, schema: dict[str, Any] | None, ask: str | None
) -> None:
    """B019, B095"""
    standin.faults(fault)
    outcome = await run(standin.job(output_schema=schema))
    assert isinstance(outcome, Success)
    assert outcome.ask == ask
    if ask is None and schema is not None:
        assert outcome.result["label"].strip("\ufffd") in ("hot", "warm", "cold", "spam")
    if ask == "invalid_output":
        assert outcome.raw_text
        assert "label" not in outcome.result
    text = json.dumps([outcome.result, outcome.raw_text], ensure_ascii=False)
    assert "\\u0000" not in text
    text.encode("utf-8")


async def test_numbers_that_json_does_not_know_are_an_invalid_output(standin: Standin) -> None:
    outputs = {"label": "hot", "score": float("nan"), "id": 653247040368672768}
    finished = {"event": "workflow_finished", "data": {"id": RUN_ID, "status": "succeeded", "outputs": outputs}}
    frame = f"data: {json.dumps(finished)}\n\n".encode()
    standin.faults({"fault": "raw", "raw": base64.b64encode(frame).decode()})
    outcome = await run(standin.job(output_schema=LABELLED))
    assert isinstance(outcome, Success)
    assert outcome.ask == "invalid_output"
    assert outcome.result == {"label": "hot", "score": None, "id": 653247040368672768}
    assert "NaN" in (outcome.raw_text or "")
    finished["data"]["outputs"] = {"score": float("inf")}  # type: ignore[index]
    standin.faults({"fault": "raw", "raw": base64.b64encode(f"data: {json.dumps(finished)}\n\n".encode()).decode()})
    without_schema = await run(standin.job())
    assert isinstance(without_schema, Success)
    assert without_schema.ask == "invalid_output"


async def test_an_output_schema_that_cannot_be_used_is_named(standin: Standin) -> None:
    outcome = await run(standin.job(output_schema={"type": "nonsense"}))
    assert isinstance(outcome, Failure)
    assert outcome.error_class is ErrorClass.PERMANENT
    assert "output_schema" in outcome.message
