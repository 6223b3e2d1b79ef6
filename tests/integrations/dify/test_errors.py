from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from board.ports import Answer, Cause, ErrorClass
from integrations.dify.errors import (
    RULES,
    ApiError,
    classify,
    error_from,
    hide,
    read_error,
    read_retry_after,
    run_error,
)
from tests.integrations.dify import cases

KEY = "app-1234567890abcdefghij"

T, Q, P, U = ErrorClass.TRANSIENT, ErrorClass.QUOTA, ErrorClass.PERMANENT, ErrorClass.UNKNOWN
BUSY = "Too many requests. Please try again later. The current maximum concurrent requests allowed is 5."

TABLE: list[tuple[int, str | None, str, ErrorClass, Cause]] = [
    (401, "unauthorized", "Access token is invalid", P, Cause.AUTH),
    (403, "forbidden", "The app's API service has been disabled.", P, Cause.AUTH),
    (403, "workflow_version_execution_not_allowed", "", P, Cause.AUTH),
    (404, "not_found", "Workflow not found", P, Cause.PRECONDITION),
    (400, "invalid_param", "Arg user must be provided.", P, Cause.PRECONDITION),
    (400, "invalid_param", "Workflow not published", P, Cause.PRECONDITION),
    (400, "invalid_param", "query is required in input form", P, Cause.PRECONDITION),
    (400, "invalid_param", BUSY, T, Cause.RATE_LIMIT),
    (400, "invalid_param", "Run failed: the tool broke", U, Cause.UNKNOWN),
    (400, "invalid_param", "Run failed: Error code: 429 - slow down", Q, Cause.RATE_LIMIT),
    (429, "too_many_requests", BUSY, T, Cause.RATE_LIMIT),
    (429, "rate_limit_error", "quota", Q, Cause.RATE_LIMIT),
    (429, None, "", T, Cause.RATE_LIMIT),
    (400, "bad_request", "Failed to decode JSON object", P, Cause.PRECONDITION),
    (415, "unsupported_media_type", "", P, Cause.PRECONDITION),
    (400, "not_workflow_app", "", P, Cause.PRECONDITION),
    (400, "not_chat_app", "", P, Cause.PRECONDITION),
    (400, "app_unavailable", "", P, Cause.PRECONDITION),
    (400, "agent_not_published", "", P, Cause.PRECONDITION),
    (400, "conversation_completed", "", P, Cause.PRECONDITION),
    (400, "provider_not_initialize", "", P, Cause.PRECONDITION),
    (400, "provider_quota_exceeded", "", Q, Cause.RATE_LIMIT),
    (400, "model_currently_not_support", "", P, Cause.PRECONDITION),
    (400, "completion_request_error", "[x] Rate Limit Error, Error code: 429 - slow down", Q, Cause.RATE_LIMIT),
    (400, "completion_request_error", "[x] Server Unavailable Error", U, Cause.UPSTREAM_4XX),
    (413, "file_too_large", "", P, Cause.PRECONDITION),
    (415, "unsupported_file_type", "", P, Cause.PRECONDITION),
    (400, "no_file_uploaded", "", P, Cause.PRECONDITION),
    (400, "too_many_files", "", P, Cause.PRECONDITION),
    (400, "file_extension_blocked", "", P, Cause.PRECONDITION),
    (400, "filename_not_exists_error", "", P, Cause.PRECONDITION),
    (412, "human_input_form_submitted", "", P, Cause.PRECONDITION),
    (412, "human_input_form_expired", "", P, Cause.PRECONDITION),
    (400, "invalid_form_data", "", P, Cause.PRECONDITION),
    (500, "internal_server_error", "Internal Server Error", T, Cause.UPSTREAM_5XX),
    (502, "unknown", "", T, Cause.UPSTREAM_5XX),
    (503, None, "", T, Cause.UPSTREAM_5XX),
    (504, None, "", T, Cause.TIMEOUT),
    (524, None, "", T, Cause.TIMEOUT),
    (500, None, "text is required in input form", P, Cause.PRECONDITION),
    (301, None, "", P, Cause.PRECONDITION),
    (404, None, "", P, Cause.PRECONDITION),
    (401, None, "", P, Cause.AUTH),
    (418, "teapot", "", P, Cause.UPSTREAM_4XX),
    (0, None, "", U, Cause.UNKNOWN),
    (0, "internal_server_error", "", T, Cause.UPSTREAM_5XX),
]


@pytest.mark.parametrize(("status", "code", "message", "error_class", "cause"), TABLE)
def test_every_error_has_its_class(
    status: int, code: str | None, message: str, error_class: ErrorClass, cause: Cause
) -> None:
    failure = classify(ApiError(status, code, message), "leads")
    assert (failure.error_class, failure.cause) == (error_class, cause)
    assert (failure.code, failure.http_status) == (code, status or None)
    assert failure.rule in {rule.name for rule in RULES}
    assert failure.message.count("{") == 0
    assert message in failure.message
    assert (code or "") in failure.message


@pytest.mark.parametrize(
    ("error", "error_class"),
    [
        ("Rate limit reached for gpt in organization", Q),
        ("Error code: 429 - {'error': …}", Q),
        ("You exceeded your current quota", Q),
        ("text is required in input form", P),
        ("Node 3 broke", U),
        (None, U),
    ],
)
def test_failed_runs(error: str | None, error_class: ErrorClass) -> None:
    assert classify(run_error(error), "leads").error_class is error_class


@pytest.mark.parametrize("case", cases.HTTP_ERRORS, ids=lambda case: f"{case['http']} {case['task_should'][:20]}")
def test_case_answers(case: dict[str, Any]) -> None:
    """B021: what each recorded answer leads to."""
    body = case["body"] if isinstance(case["body"], str) else json.dumps(case["body"])
    headers = {name.lower(): value for name, value in case.get("headers", {}).items()}
    error = read_error(Answer(case["http"], {"content-type": case["type"], **headers}, body.encode()))
    failure = classify(error, "leads", [KEY])
    should = case["task_should"]
    if should.startswith("retrying"):
        assert failure.error_class in (T, Q)
        assert not error.unsure
    if should.startswith("failed at once"):
        assert failure.error_class is P
    if "3 s" in should:
        assert failure.retry_after == 3
    if "code shown" in should:
        assert failure.code in failure.message
    if "points at the settings" in should:
        assert "settings of the connection “leads”" in failure.message
    if "ask for the run" in should:
        assert error.unsure
    assert "<" not in failure.message
    assert len(failure.message) <= 500


def test_keys_and_pages_are_never_kept() -> None:
    said = f"Incorrect API key sk-proj-abcdef0123456789 for {KEY}, Bearer abc.def-123456 <html><body>secret page"
    error = error_from({"code": "unauthorized", "message": said, "status": 401})
    failure = classify(error, "leads", [KEY, "short-secret"])
    assert "Incorrect API key [key] for [key], [key]" in failure.message
    assert "page" not in failure.message
    assert hide("it is short-secret.", ["short-secret", ""]) == "it is [key]."


def test_long_and_odd_messages_stay_short_sentences() -> None:
    failure = classify(error_from({"code": "x" * 500, "message": "a\x00\n\ud800" * 1000, "status": "400"}), "leads")
    assert len(failure.message) < 700
    failure.message.encode()
    assert "\n" not in failure.message
    for status in (None, True, "²", "9" * 5000, 9 * 10**4000, -5, {}):
        odd = error_from({"code": 5, "message": {"a": 1}, "status": status})
        assert (odd.status, odd.code, odd.message) == (0, None, "")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3),
        ("0", 0),
        (" 1.5 ", 1.5),
        ("999999999", 86400),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("soon", None),
        ("", None),
        ("-5", None),
        ("٣", None),
        ("Wed, 99 Oct 2015", None),
        (None, None),
    ],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    assert read_retry_after(value) == seconds


def test_retry_after_as_a_date() -> None:
    at = datetime.now(UTC) + timedelta(seconds=90)
    assert read_retry_after(format_datetime(at, usegmt=True)) == pytest.approx(90, abs=3)


def test_the_page_names_every_rule_with_its_class() -> None:
    page = (Path(__file__).parents[3] / "docs" / "dify-errors.md").read_text("utf-8")
    named = re.findall(r"^\| `([\w-]+)` \| (\w+) \|", page, re.MULTILINE)
    assert named == [(rule.name, str(rule.error_class)) for rule in RULES]
