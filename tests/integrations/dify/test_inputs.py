from __future__ import annotations

from typing import Any

import pytest

from board.ports import Answer, Cause, ErrorClass, Failure, JsonObject, Success
from integrations.dify.client import Client
from integrations.dify.inputs import Fitted, Forms, Problem, convert, read_form
from integrations.dify.workflow import Workflow
from tests.integrations.dify.conftest import Standin
from tests.integrations.dify.doubles import NotedJob, WatchedHttp, connection


def item(kind: str, name: str, **more: Any) -> JsonObject:
    return {kind: {"variable": name, "label": name, "required": False, **more}}


FORM = read_form(
    {
        "user_input_form": [
            item("text-input", "title", max_length=10, required=True),
            item("paragraph", "body"),
            item("select", "region", options=["EU", "CN"]),
            item("number", "amount"),
            item("checkbox", "urgent"),
            item("json_object", "extra"),
            item("file", "photo"),
            item("file-list", "photos"),
            item("some-new-kind", "new"),
        ]
    }
)
FILE = {"type": "image", "transfer_method": "remote_url", "url": "https://example.org/a.png"}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"body": {"a": "你"}}, {"body": '{"a": "你"}'}),
        ({"body": [1]}, {"body": "[1]"}),
        ({"body": 5}, {"body": "5"}),
        ({"body": True}, {"body": "true"}),
        ({"body": ""}, {"body": ""}),
        ({"body": None}, {}),
        ({"region": "EU"}, {"region": "EU"}),
        ({"amount": 1.5}, {"amount": 1.5}),
        ({"amount": "12"}, {"amount": 12}),
        ({"amount": "1.5"}, {"amount": 1.5}),
        ({"amount": ""}, {}),
        ({"amount": " -2e3 "}, {"amount": -2000.0}),
        ({"photo": []}, {}),
        ({"photos": []}, {}),
        ({"urgent": "True"}, {"urgent": True}),
        ({"urgent": 0}, {"urgent": False}),
        ({"extra": {"a": 1}}, {"extra": {"a": 1}}),
        ({"extra": '{"a": 1}'}, {"extra": {"a": 1}}),
        ({"photo": FILE}, {"photo": FILE}),
        ({"photos": FILE}, {"photos": [FILE]}),
        ({"new": [1, {}]}, {"new": [1, {}]}),
        ({"instruction": ""}, {}),
    ],
)
def test_values_are_converted_where_nothing_is_lost(given: JsonObject, sent: JsonObject) -> None:
    assert FORM is not None
    assert convert(FORM, {"title": "t", **given}, strict=True) == {"title": "t", **sent}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"title": "12345678901"}, "title.*11.*10"),
        ({"title": ""}, "missing or empty: title"),
        ({"title": None}, "missing or empty: title"),
        ({"region": "US"}, "region.*EU, CN"),
        ({"amount": "many"}, "amount"),
        ({"amount": True}, "amount"),
        ({"amount": "1_000"}, "amount"),
        ({"amount": "١٢"}, "amount"),
        ({"amount": "nan"}, "amount"),
        ({"urgent": "maybe"}, "urgent"),
        ({"extra": [1]}, "extra"),
        ({"extra": "{"}, "extra"),
        ({"photo": {"page": "f-1"}}, "photo.*must be a file"),
        ({"photos": ["https://example.org"]}, "photos"),
        ({"instruction": "shorter"}, "instruction.*title, body"),
    ],
)
def test_what_dify_would_drop_or_refuse_is_named(given: JsonObject, named: str) -> None:
    assert FORM is not None
    with pytest.raises(Problem, match=named):
        convert(FORM, {"title": "t", **given}, strict=True)


@pytest.mark.parametrize("given", [[], None, ""])
def test_a_required_list_of_files_that_is_empty_is_missing(given: Any) -> None:
    """Dify would say so only after the run has begun."""
    form = read_form({"user_input_form": [item("file-list", "scans", required=True)]})
    assert form is not None
    with pytest.raises(Problem, match="missing or empty: scans"):
        convert(form, {"scans": given}, strict=True)


def test_all_problems_are_told_together() -> None:
    assert FORM is not None
    with pytest.raises(Problem, match=r"wrong.*amount.*title"):
        convert(FORM, {"wrong": 1, "amount": "x"}, strict=True)


def test_a_whole_payload_may_hold_more_than_the_form() -> None:
    assert FORM is not None
    assert convert(FORM, {"title": "t", "external_id": "9"}, strict=False) == {"title": "t"}


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"user_input_form": []},
        {"user_input_form": "x"},
        {"user_input_form": [1, {"a": 2}, {"b": {}}]},
    ],
)
def test_without_a_known_form_nothing_is_checked(parameters: JsonObject) -> None:
    assert read_form(parameters) is None


async def test_problems_stop_the_attempt_before_anything_is_sent(standin: Standin) -> None:
    job = NotedJob(connection(standin.url), {"txt": "a typing error"})
    outcome = await Workflow().run(job)
    assert isinstance(outcome, Failure)
    assert (outcome.error_class, outcome.cause) == (ErrorClass.PERMANENT, Cause.PRECONDITION)
    assert "“txt”" in outcome.message
    assert "missing or empty: text" in outcome.message
    assert (job.sent, standin.runs_asked_for()) == ([], [])


async def test_the_payload_itself_is_offered_where_the_type_names_no_inputs(standin: Standin) -> None:
    payload = {"text": "200 seats", "external_id": 17}
    outcome = await Workflow().run(NotedJob(connection(standin.url), dict(payload), payload))
    assert isinstance(outcome, Success)
    assert standin.runs_asked_for()[0]["body"]["inputs"] == {"text": "200 seats"}


def asked_for_form(standin: Standin) -> int:
    return sum(entry["path"].endswith("/parameters") for entry in standin.seen()["requests"])


async def test_a_form_is_read_once_and_again_before_a_problem_is_told(standin: Standin) -> None:
    handler = Workflow()
    for _ in range(3):
        assert isinstance(await handler.run(standin.job()), Success)
    assert asked_for_form(standin) == 1
    assert isinstance(await handler.run(NotedJob(connection(standin.url), {"txt": "x"})), Failure)
    assert asked_for_form(standin) == 2


async def test_a_key_never_sees_the_form_of_another(standin: Standin) -> None:
    forms = Forms()
    for key, field in (("app-demo-leads", "company"), ("app-demo-complaints", "order")):
        to = connection(standin.url, key)
        job = NotedJob(to, {})
        fitted = await forms.fit(Client(job.http, to), to, {"text": "x", field: "y"}, use="dify.workflow", strict=True)
        assert fitted == Fitted({"text": "x", field: "y"}, {}, "workflow")
    assert "app-demo" not in repr(vars(forms))


@pytest.mark.parametrize(
    ("status", "error_class"), [(401, ErrorClass.PERMANENT), (502, ErrorClass.TRANSIENT), (429, ErrorClass.TRANSIENT)]
)
async def test_when_the_form_cannot_be_read_nothing_is_sent(
    standin: Standin, status: int, error_class: ErrorClass
) -> None:

    class Refusing(WatchedHttp):
        async def request(self, method: str, url: str, **more: Any) -> Answer:
            return Answer(status, {"retry-after": "7"}, b"<html>no</html>")

    job = standin.job(http=Refusing())
    outcome = await Workflow().run(job)
    assert isinstance(outcome, Failure)
    assert (outcome.error_class, outcome.retry_after, job.sent) == (error_class, 7, [])


async def test_a_dify_without_that_call_is_used_unchecked(standin: Standin) -> None:

    class Without(WatchedHttp):
        async def request(self, method: str, url: str, **more: Any) -> Answer:
            return (
                Answer(404, {}, b"not found")
                if url.endswith("/parameters")
                else await super().request(method, url, **more)
            )

    job = NotedJob(connection(standin.url), {"text": "200 seats", "unknown": "dropped by Dify"}, http=Without())
    assert isinstance(await Workflow().run(job), Success)
