"""What holds for every flat endpoint: keys and bodies as Dify sends them, refusals that it shows to a model."""

from __future__ import annotations

import logging
from typing import Any

import httpx2
import pytest

from board.tools.verbs import VERBS
from tests.api.conftest import BOOTSTRAP, Api
from tests.rig.board import StartBoard
from tests.tools.conftest import Agent, agent_of
from tests.tools.importer import import_document

NAMES = [verb.name for verb in VERBS]


@pytest.fixture
def one(one_api: Api) -> Agent:
    return agent_of(one_api)


def test_the_document_needs_no_key_and_names_the_public_address(one_api: Api) -> None:
    answer = httpx2.get(f"{one_api.url}/integrations/dify/openapi.json", trust_env=False, verify=False)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json()["servers"] == [{"url": one_api.board.settings.public_url}]
    assert len(import_document(answer.text).tools) == len(NAMES)


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer Bearer {BOOTSTRAP}"},
        {"Authorization": f"bearer Bearer bearer  {BOOTSTRAP}"},
        {"Authorization": f"Bearer {BOOTSTRAP}", "X-API-Key": "", "Idempotency-Key": "", "X-Request-Id": ""},
        {"Authorization": "", "X-API-Key": BOOTSTRAP},
        {"Authorization": "Bearer", "X-API-Key": BOOTSTRAP},
    ],
)
def test_keys_as_dify_sends_them(one: Agent, headers: dict[str, str]) -> None:
    assert one.post("find_tasks", json={}, headers=headers).status_code == 200


@pytest.mark.parametrize("name", NAMES)
def test_without_a_good_key_a_model_reads_whom_to_tell(one: Agent, name: str) -> None:
    for headers in ({"Authorization": ""}, {"Authorization": "Bearer wrong"}):
        answer = one.post(name, json={}, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (400, "unauthorized")
        assert answer.json()["message"].startswith("Tell your people: ")


@pytest.mark.parametrize(
    ("name", "required"), [(verb.name, [it.flat_name for it in verb.arguments if it.required]) for verb in VERBS]
)
def test_empty_texts_are_absent_everywhere(one: Agent, name: str, required: list[str]) -> None:
    tool = one.tools[name]
    answer = one.post(name, json=dict.fromkeys((it.name for it in tool.parameters), ""))
    if not required:
        assert answer.status_code == 200
        return
    assert answer.status_code == 422
    assert answer.json()["message"].startswith(f"{required[0]}: is missing.")


@pytest.mark.parametrize(
    ("content", "status"),
    [(b"{not json", 400), (b"\xff\xfe", 400), (b"[]", 422), (b'"text"', 422), (b'{"query": "\\u0000"}', 422)],
)
def test_a_body_that_is_none_is_refused_in_words(one: Agent, content: bytes, status: int) -> None:
    assert one.post("find_tasks", content=content).status_code == status


def test_a_body_over_the_limit_is_413(one: Agent) -> None:
    answer = one.post("find_tasks", json={"query": "x" * (one.api.board.settings.max_json + 1)})
    assert (answer.status_code, answer.json()["code"]) == (413, "json_too_large")


def test_a_parameter_in_the_address_is_refused_not_ignored(one: Agent) -> None:
    url = one.tools["find_tasks"].url + "?status=done"
    answer = httpx2.post(url, json={}, headers={"X-API-Key": BOOTSTRAP}, trust_env=False, verify=False)
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_field")


@pytest.mark.parametrize("path", ["/integrations/dify/none", "/integrations/dify", "/integrations"])
def test_addresses_beside_them_answer_programs_not_people(one_api: Api, path: str) -> None:
    answer = httpx2.post(one_api.url + path, json={}, trust_env=False, verify=False)
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


def test_answers_are_small_objects_without_the_word_error(one: Agent) -> None:
    answer = one("find_tasks")
    assert isinstance(answer.json(), dict)
    assert "error" not in answer.json()
    assert answer.content


def test_what_is_our_fault_stays_500_and_says_nothing_of_the_inside(
    one: Agent, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret of the house")

    monkeypatch.setattr("board.tools.looking.read.list_tasks", fail)
    with caplog.at_level(logging.CRITICAL):
        answer = httpx2.post(
            one.tools["find_tasks"].url, json={}, headers={"X-API-Key": BOOTSTRAP}, trust_env=False, verify=False
        )
    assert answer.status_code == 500
    assert "secret" not in answer.text


def test_an_agent_works_with_a_real_board(board_process: StartBoard) -> None:
    board = board_process("up", env={"BOARD_BOOTSTRAP_API_KEY": BOOTSTRAP})
    types = [
        {"name": "trial", "handler": {"use": "echo"}},
        {"name": "question", "handler": {"use": "none"}, "require_id": False, "review": {"grace": "0s"}},
    ]
    headers = {"Authorization": f"Bearer {BOOTSTRAP}"}
    with httpx2.Client(base_url=board.url, headers=headers, trust_env=False, verify=False, timeout=60) as client:
        assert client.post("/api/v1/types", json={"types": types}).is_success
        document = client.get("/integrations/dify/openapi.json").json()
        tools = {tool.name: tool for tool in import_document(document).tools}

        def use(name: str, **arguments: str) -> Any:
            path = tools[name].url.removeprefix(document["servers"][0]["url"])
            answer = client.post(path, json=tools[name].sent(arguments))
            assert answer.is_success, answer.text
            return answer.json()

        filed = use("create_task", type="trial", payload_json='{"n": 1}', task_id="A")
        assert use("get_task", task_id=filed["task_id"], wait_seconds="50")["result"] == {"n": 1}
        asked = use("request_review", question="May I?")
        assert use("get_task", task_id=asked["task_id"], wait_seconds="50")["status"] == "needs_review"
        assert client.post(f"/api/v1/tasks/{asked['task_id']}/approve", json={}).is_success
        assert use("get_decision", task_id=asked["task_id"], wait_seconds="50")["verdict"] == "approve"
    assert board.stop() == 0
