"""/operations over HTTP: programs announce their calls, say how they went, and see what is recorded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.api.conftest import Api

INVOICE: dict[str, Any] = {"key": "invoice:7:v1", "target": "Billing", "request_hash": "a" * 64}


@pytest.fixture
def n8n(api: Api) -> Api:
    """A key that may work and nothing else."""
    return api.as_key("work", name="n8n")


def announce(api: Api, **more: Any) -> httpx2.Response:
    return api.post("/operations", json=INVOICE | more)


def reserved(api: Api, **more: Any) -> dict[str, Any]:
    answer = announce(api, **more)
    assert answer.status_code == 201, answer.text
    operation: dict[str, Any] = answer.json()
    return operation


def step(api: Api, operation: dict[str, Any], name: str, **body: Any) -> httpx2.Response:
    return api.post(f"/operations/{operation['id']}/{name}", json=body)


def entries(api: Api, operation: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    """(kind, who, note) of everything that is known of it."""
    found = api.get(f"/operations/{operation['id']}").json()
    return [(it["kind"], it["actor"]["name"], it["note"]) for it in found["events"]]


def test_reserved_sent_confirmed_and_the_next_who_asks_gets_the_reference(api: Api, n8n: Api) -> None:
    made = reserved(n8n, execution_id=4711)
    assert made["go_ahead"] is True
    assert (made["status"], made["owner"], made["execution_id"]) == ("reserved", "key:n8n", "4711")
    assert (made["kind"], made["task_id"], made["tries"], made["left_open"]) == ("outside", None, 1, False)
    sent = step(n8n, made, "sent").json()
    assert (sent["status"], sent["sent_at"] is not None, sent["closed_at"]) == ("sent", True, None)
    confirmed = step(n8n, made, "confirm", external_reference="INV-2026-77").json()
    assert (confirmed["status"], confirmed["external_reference"]) == ("confirmed", "INV-2026-77")
    assert confirmed["closed_at"] is not None
    again = announce(n8n, execution_id=4712)
    assert again.status_code == 200
    assert again.json()["go_ahead"] is False
    assert (again.json()["status"], again.json()["external_reference"]) == ("confirmed", "INV-2026-77")
    assert again.json()["message"] == "This was done before; its reference is INV-2026-77."
    assert entries(api, made) == [
        ("reserved", "n8n", None),
        ("sent", "n8n", None),
        ("confirmed", "n8n", "Its number there: INV-2026-77"),
    ]


def test_what_another_has_reserved_is_not_done(api: Api, n8n: Api) -> None:
    reserved(n8n, execution_id="run-1")
    other = api.as_key("work", name="crm")
    for asker, execution in ((other, "run-1"), (n8n, "run-2"), (n8n, None)):
        answer = announce(asker, execution_id=execution)
        assert (answer.status_code, answer.json()["go_ahead"]) == (200, False)
        assert "is reserved by key:n8n (execution run-1) since" in answer.json()["message"]
        assert "Do not send it." in answer.json()["message"]


def test_the_same_run_that_asks_again_gets_the_same_answer(n8n: Api) -> None:
    """Its first answer may have been lost. Once it has said that the call is out, it is not told to go ahead again."""
    made = reserved(n8n, execution_id="run-1")
    again = announce(n8n, execution_id="run-1")
    assert (again.status_code, again.json()["id"], again.json()["go_ahead"]) == (200, made["id"], True)
    step(n8n, made, "sent")
    assert announce(n8n, execution_id="run-1").json()["go_ahead"] is False


def test_many_at_once_and_one_goes_ahead(api: Api) -> None:
    programs = [api.as_key("work", name=f"flow-{number}") for number in range(6)]
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(announce, programs))
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [201]
    assert [answer.json()["go_ahead"] for answer in answers].count(True) == 1


def test_another_content_under_the_key_is_refused_and_shown(api: Api, n8n: Api) -> None:
    api.submit("T-1")
    made = reserved(n8n)
    refused = announce(n8n, request_hash="b" * 64, task_id="T-1", execution_id="run-9")
    assert refused.status_code == 409
    assert refused.json()["code"] == "operation_conflict"
    assert "used before with another content" in refused.json()["message"]
    [standing] = refused.json()["details"]
    assert (standing["id"], standing["status"], standing["owner"]) == (made["id"], "reserved", "key:n8n")
    assert entries(api, made)[1:] == [
        ("refused", "n8n", "key:n8n (execution run-9) wanted the key for another content, for Billing; it was refused.")
    ]
    [event] = [it for it in api.events() if it["kind"] == "operation_refused"]
    assert event["data"] == {"operation": made["id"]}
    step(n8n, made, "confirm")
    assert announce(n8n, request_hash="b" * 64).status_code == 409


def test_what_was_refused_may_be_tried_again_by_its_program_also_with_another_content(api: Api, n8n: Api) -> None:
    made = reserved(n8n)
    assert step(n8n, made, "reject", message="The customer does not exist.").json()["last_error"] == (
        "The customer does not exist."
    )
    other = announce(api.as_key("work", name="crm"))
    assert (other.status_code, other.json()["go_ahead"], other.json()["status"]) == (200, False, "rejected")
    again = announce(n8n, request_hash="c" * 64)
    assert (again.status_code, again.json()["id"], again.json()["tries"]) == (201, made["id"], 2)
    assert (again.json()["last_error"], again.json()["closed_at"]) == (None, None)


@pytest.mark.parametrize(
    ("path", "first", "second", "code"),
    [
        ([], "sent", "sent", 200),
        (["sent"], "confirm", "confirm", 200),
        ([], "confirm", "confirm", 200),
        (["sent"], "reject", "reject", 200),
        (["sent"], "unknown", "unknown", 200),
        (["sent"], "unknown", "confirm", 200),  # it has found out
        (["sent"], "unknown", "reject", 200),
        (["sent"], "unknown", "sent", 409),
        (["sent"], "confirm", "reject", 409),
        (["sent"], "confirm", "unknown", 409),
        (["sent"], "confirm", "sent", 409),
        (["sent"], "reject", "confirm", 409),
        (["sent"], "reject", "unknown", 409),
    ],
)
def test_repeats_are_harmless_and_other_ways_are_refused_with_the_state(
    api: Api, n8n: Api, path: list[str], first: str, second: str, code: int
) -> None:
    made = reserved(n8n)
    for name in [*path, first]:
        before = step(n8n, made, name)
        assert before.status_code == 200
    known = entries(api, made)
    answer = step(n8n, made, second)
    assert answer.status_code == code, answer.text
    if code == 409:
        assert answer.json()["code"] == "illegal_state"
        [standing] = answer.json()["details"]
        assert standing["status"] == before.json()["status"]
        assert entries(api, made)[:-1] == known
        assert entries(api, made)[-1][0] == "refused"  # what came too late is kept, too
    elif first == second:
        assert answer.json()["repeated"] is True
        assert entries(api, made) == known
    else:
        assert "repeated" not in answer.json()


def test_a_confirmation_keeps_its_reference(n8n: Api) -> None:
    made = reserved(n8n)
    step(n8n, made, "confirm")
    assert step(n8n, made, "confirm", external_reference=77).json()["external_reference"] == "77"
    assert step(n8n, made, "confirm", external_reference="77").json()["repeated"] is True
    assert step(n8n, made, "confirm").json()["external_reference"] == "77"
    refused = step(n8n, made, "confirm", external_reference="78")
    assert (refused.status_code, refused.json()["details"][0]["external_reference"]) == (409, "77")


def test_only_who_announced_it_says_how_it_went(api: Api, n8n: Api) -> None:
    made = reserved(n8n)
    for key in (api, api.as_key("work", name="crm")):
        refused = step(key, made, "confirm")
        assert (refused.status_code, refused.json()["code"]) == (403, "not_yours")
    assert step(api.as_key("read", "review", name="li"), made, "confirm").status_code == 403
    assert step(n8n, {"id": "999999"}, "confirm").json()["code"] == "operation_not_found"
    assert step(n8n, {"id": "x"}, "sent").status_code == 404
    assert announce(api.as_key("submit", "read", "review", name="reader")).status_code == 403


def test_a_late_run_is_told_that_another_has_taken_over(n8n: Api) -> None:
    made = reserved(n8n, execution_id="run-1")
    step(n8n, made, "reject")
    reserved(n8n, execution_id="run-2")
    late = step(n8n, made, "confirm", execution_id="run-1")
    assert (late.status_code, late.json()["message"]) == (409, "Execution run-2 has reserved this operation since.")
    assert step(n8n, made, "confirm", execution_id="run-2").status_code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"key": ""}, "key"),
        ({"key": "x" * 501}, "key"),
        ({"key": " a"}, "key"),
        ({"key": "a\nb"}, "key"),
        ({"target": ""}, "target"),
        ({"request_hash": ""}, "request_hash"),
        ({"request_hash": "x" * 65}, "request_hash"),
        ({"task_id": "no-such"}, "task_id"),
        ({"task_id": "a/b"}, "task_id"),
        ({"execution_id": True}, "execution_id"),
        ({"colour": 1}, "colour"),
    ],
    ids=str,
)
def test_what_is_refused_names_the_field(n8n: Api, body: dict[str, Any], field: str) -> None:
    answer = announce(n8n, **body)
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, field), answer.text


def test_lists_by_state_and_owner_page_by_page(api: Api, n8n: Api) -> None:
    api.submit("T-1")
    made = [reserved(n8n, key=f"k-{number}", task_id="T-1" if number == 2 else None) for number in range(5)]
    crm = api.as_key("work", name="crm")
    reserved(crm, key="k-crm")
    step(n8n, made[0], "unknown")
    step(n8n, made[1], "confirm")

    def keys(asker: Api, query: str) -> list[str]:
        return [it["key"] for it in asker.get(f"/operations?{query}").json()["data"]]

    assert keys(api, "status=unknown") == ["k-0"]
    assert keys(api, "status=unknown,confirmed") == ["k-1", "k-0"]
    assert keys(api, "status=reserved&owner=key:n8n") == ["k-4", "k-3", "k-2"]
    assert keys(api, "task_id=T-1") == ["k-2"]
    assert keys(api, "key=k-1") == ["k-1"]
    assert keys(api, "kind=outside&limit=2") == ["k-crm", "k-4"]
    assert keys(n8n, "") == ["k-4", "k-3", "k-2", "k-1", "k-0"]
    assert keys(n8n, "owner=key:crm") == ["k-4", "k-3", "k-2", "k-1", "k-0"]  # its own, whatever it asks for
    first = api.get("/operations?limit=4").json()
    second = api.get(f"/operations?limit=4&cursor={first['next_cursor']}").json()
    assert [it["key"] for it in first["data"] + second["data"]] == ["k-crm", "k-4", "k-3", "k-2", "k-1", "k-0"]
    assert second["next_cursor"] is None
    assert api.get("/operations?status=lost").json()["details"][0]["field"] == "status"
    assert api.as_key("submit", name="form").get("/operations").status_code == 403
    assert crm.get(f"/operations/{made[0]['id']}").status_code == 404
    assert n8n.get(f"/operations/{made[0]['id']}").json()["status"] == "unknown"


def test_what_is_left_open_for_long_stays_and_is_shown_as_such(api: Api, n8n: Api, at: Any) -> None:
    made = reserved(n8n)
    assert api.get("/operations?in_question=true").json()["data"] == []
    at(16 * 60)
    [found] = api.get("/operations?in_question=true").json()["data"]
    assert (found["id"], found["status"], found["left_open"]) == (made["id"], "reserved", True)
    again = announce(n8n)
    assert (again.status_code, again.json()["go_ahead"]) == (200, False)
    assert step(n8n, made, "confirm").status_code == 200  # it was only slow


# -- a person answers ---------------------------------------------------------------------------------------------


def resolve(api: Api, operation: dict[str, Any], outcome: str, **more: Any) -> httpx2.Response:
    body = {"outcome": outcome, "reason": "I have looked."} | more
    return api.post(f"/operations/{operation['id']}/resolve", json=body)


@pytest.mark.parametrize(
    ("outcome", "status", "next_code", "go_ahead"),
    [("happened", "confirmed", 200, False), ("not_happened", "rejected", 201, True), ("drop", "rejected", 200, False)],
)
def test_an_unknown_outcome_without_a_task(
    api: Api, n8n: Api, outcome: str, status: str, next_code: int, go_ahead: bool
) -> None:
    made = reserved(n8n)
    step(n8n, made, "unknown", message="The line was cut.")
    li = api.as_key("review", name="li")
    for repeated in (False, True):
        answer = resolve(li, made, outcome, external_reference="INV-1" if outcome == "happened" else None)
        assert answer.status_code == 200, answer.text
        assert answer.json().get("repeated", False) is repeated
        assert (answer.json()["status"], answer.json()["resolution"]) == (status, outcome)
    assert entries(api, made)[-1] == ("resolved", "li", "I have looked.")
    other = next(name for name in ("happened", "not_happened", "drop") if name != outcome)
    refused = resolve(li, made, other)
    assert (refused.status_code, refused.json()["code"]) == (409, "already_decided")
    assert refused.json()["details"][0] | {"at": None} == {
        "verdict": outcome,
        "by": "key:li",
        "at": None,
        "status": status,
        "external_reference": "INV-1" if outcome == "happened" else None,
    }
    again = announce(n8n)
    assert (again.status_code, again.json()["go_ahead"]) == (next_code, go_ahead)
    if outcome == "happened":
        assert again.json()["external_reference"] == "INV-1"


def test_an_answer_needs_a_reason_a_reviewer_and_something_in_question(api: Api, n8n: Api) -> None:
    made = reserved(n8n)
    assert resolve(api, made, "drop", reason="").json()["details"][0]["field"] == "reason"
    assert resolve(n8n, made, "drop").status_code == 403
    assert resolve(api, {"id": "999999"}, "drop").json()["code"] == "operation_not_found"
    step(n8n, made, "confirm")
    refused = resolve(api, made, "not_happened")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_unknown")


def test_what_its_program_has_left_open_a_person_may_close(api: Api, n8n: Api) -> None:
    made = reserved(n8n)
    assert resolve(api, made, "not_happened").json()["status"] == "rejected"
    late = step(n8n, made, "confirm", external_reference="INV-9")
    assert late.status_code == 409
    kind, _, note = entries(api, made)[-1]
    assert kind == "refused"
    assert note is not None
    assert note.startswith("key:n8n said “confirmed” (INV-9), which came too late. This operation is rejected")
