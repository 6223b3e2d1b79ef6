"""What people see in n8n's own HTTP Request node: errors in words, lists as items, codes that mean something."""

from __future__ import annotations

from typing import Any

import pytest

from tests.n8n import nodes
from tests.n8n.board import TheBoard
from tests.n8n.server import Execution, Flows, N8n

FULL = {"response": {"response": {"fullResponse": True, "neverError": True}}}


class Caller:
    """Runs one HTTP Request node in a flow of its own."""

    def __init__(self, flows: Flows, board: TheBoard) -> None:
        self._flows, self._board = flows, board

    def __call__(
        self, method: str, path: str, body: str | None = None, *around: dict[str, Any], **more: Any
    ) -> Execution:
        """around: nodes before it, as far as they are items, and behind it."""
        node = nodes.http("Call", method, f"{self._board.url}/api/v1{path}", body, **more)
        before = [it for it in around if it["name"] == "Items"]
        behind = [it for it in around if it["name"] != "Items"]
        flow = self._flows.make(nodes.webhook("call"), *before, node, *behind)
        flow.post("call", json={})
        [execution] = flow.ended(1)
        flow.deactivate()
        return execution


@pytest.fixture
def call(flows: Flows, board: TheBoard) -> Caller:
    board.apply({"name": "outside", "handler": {"use": "outside", "side_effects": False}})
    board.apply({"name": "echo", "handler": {"use": "echo"}})
    return Caller(flows, board)


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("POST", "/tasks", "JSON.stringify({type: 'outside', priority: 'P9'})", "priority"),
        ("POST", "/tasks", "JSON.stringify({type: 'outside', colour: 'red'})", "colour"),
        ("POST", "/tasks", "JSON.stringify({type: 'nothing'})", "nothing"),
        ("GET", "/tasks/no-such-task", None, "no-such-task"),
        ("POST", "/tasks", "JSON.stringify({type: 'echo', payload: {a: 'x'.repeat(5000000)}})", "BOARD_MAX_JSON"),
    ],
    ids=["value", "field", "type", "absent", "too-large"],
)
def test_a_refusal_is_shown_in_the_words_of_the_board(
    call: Caller, method: str, path: str, body: str | None, words: str
) -> None:
    execution = call(method, path, body)
    assert execution.status == "error"
    assert words in execution.error["description"]
    assert "{" not in execution.error["description"]


def test_a_wrong_key_says_what_to_do(n8n: N8n, call: Caller) -> None:
    n8n.credential("Wrong key", "httpHeaderAuth", {"name": "X-API-Key", "value": "wrong"})
    execution = call("GET", "/me", None, credentials={"httpHeaderAuth": {"id": "", "name": "Wrong key"}})
    assert "key" in execution.error["description"].lower()


def test_too_many_requests_are_told_and_counted_in_a_way_that_a_flow_can_branch_on(
    n8n: N8n, board: TheBoard, call: Caller
) -> None:
    made = board.post("/keys", {"name": "slow", "scopes": ["submit"]}).json()
    board.api.patch("/keys/slow", json={"limits": {"rate": "1/h"}}).raise_for_status()
    n8n.credential("Slow key", "httpHeaderAuth", {"name": "X-API-Key", "value": made["key"]})
    slow: dict[str, Any] = {"credentials": {"httpHeaderAuth": {"id": "", "name": "Slow key"}}}
    body = "JSON.stringify({type: 'echo', payload: {n: $execution.id}})"
    call("POST", "/tasks", body, **slow)
    told = call("POST", "/tasks", body, **slow)
    assert told.status == "error"
    assert "Send it again in" in told.error["description"]
    [answer] = call("POST", "/tasks", body, options=FULL, **slow).output("Call")
    assert answer["statusCode"] == 429
    assert int(answer["headers"]["retry-after"]) > 0
    assert answer["body"]["code"]


def test_who_never_wants_an_error_gets_codes_that_mean_something(board: TheBoard, call: Caller) -> None:
    def answer(method: str, path: str, body: str | None = None) -> dict[str, Any]:
        [found] = call(method, path, body, options=FULL).output("Call")
        return found

    body = "JSON.stringify({type: 'outside', task_id: 'codes-1', on_duplicate: 'reject'})"
    assert answer("POST", "/tasks", body)["statusCode"] == 201
    refused = answer("POST", "/tasks", body)
    assert (refused["statusCode"], refused["body"]["code"]) == (409, "duplicate")
    again = answer("POST", "/tasks", "JSON.stringify({type: 'outside', task_id: 'codes-1'})")
    assert (again["statusCode"], again["body"]["duplicate"]) == (200, True)
    waited = answer("GET", "/tasks/codes-1?wait=1")
    assert (waited["statusCode"], waited["body"]["status"]) == (202, "pending")
    absent = answer("GET", "/tasks/codes-2")
    assert (absent["statusCode"], absent["body"]["code"]) == (404, "task_not_found")
    board.post("/tasks/codes-1/cancel")


def test_a_list_is_one_item_and_split_out_makes_one_of_each(board: TheBoard, call: Caller) -> None:
    for number in range(3):
        board.post("/tasks", {"type": "outside", "task_id": f"listed-{number}", "tags": ["listed"]}).raise_for_status()
    execution = call("GET", "/tasks?tag=listed", None, nodes.split())
    assert len(execution.output("Call")) == 1
    assert sorted(item["task_id"] for item in execution.output("Split Out")) == [f"listed-{n}" for n in range(3)]
    empty = call("GET", "/tasks?tag=nobody", None, nodes.split(), nodes.end())
    assert (empty.status, empty.output("Split Out")) == ("success", [])
    for number in range(3):
        board.post(f"/tasks/listed-{number}/cancel")


def test_a_failed_task_is_no_failed_call(board: TheBoard, call: Caller) -> None:
    """n8n takes a top-level `error` for a failure of the node, and would ask again: 4 more times, 5 s apart."""
    board.apply({"name": "unhappy", "handler": {"use": "outside", "side_effects": False}})
    board.post("/tasks", {"type": "unhappy", "task_id": "unhappy"}).raise_for_status()
    [claim] = board.post("/claims", {"worker": "w", "types": ["unhappy"]}).json()["data"]
    board.post(f"/claims/{claim['claim_id']}/fail", {"message": "No.", "class": "permanent"}).raise_for_status()
    patient: dict[str, Any] = {"retryOnFail": True, "maxTries": 5, "waitBetweenTries": 5000}
    execution = call("GET", "/tasks/unhappy", None, **patient)
    [item] = execution.output("Call")
    assert (item["status"], item["last_error"]) == ("failed", "No.")
    assert execution.milliseconds("Call") < 20_000


def test_all_items_at_once_and_all_of_them_again_after_one_refusal(board: TheBoard, call: Caller) -> None:
    """Retry On Fail sends every item of the node again, those too that the board has taken."""
    items = nodes.items(*({"n": n, "type": "nothing" if n == 7 else "outside"} for n in range(20)))
    body = "JSON.stringify({type: $json.type, task_id: 'burst-' + $json.n, source: 'burst'})"
    execution = call("POST", "/tasks", body, items, retryOnFail=True, maxTries=3, waitBetweenTries=0)
    assert execution.status == "error"
    tasks = board.tasks(source="burst")
    assert len(tasks) == 19
    assert all(board.kinds(task["task_id"]).count("created") == 1 for task in tasks)
    for task in tasks:
        board.post(f"/tasks/{task['task_id']}/cancel")


def test_twenty_items_of_one_id_are_one_task(board: TheBoard, call: Caller) -> None:
    """B001: they leave n8n within some milliseconds."""
    items = nodes.items(*({"n": n} for n in range(20)))
    body = "JSON.stringify({type: 'echo', task_id: 'same', payload: {n: $json.n}})"
    answers = call("POST", "/tasks", body, items).output("Call")
    assert len(answers) == 20
    assert sum("duplicate" not in answer or not answer["duplicate"] for answer in answers) == 1
    assert {answer["task_id"] for answer in answers} == {"same"}
    assert board.kinds("same").count("created") == 1


def test_who_holds_the_line_gets_the_result(call: Caller) -> None:
    body = "JSON.stringify({type: 'echo', task_id: 'held', payload: {n: 7}})"
    [item] = call("POST", "/tasks?wait=30", body).output("Call")
    assert (item["status"], item["result"]) == ("done", {"n": 7})


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_who_leaves_loses_nothing(board: TheBoard, call: Caller, accept: str) -> None:
    task_id = f"left.{accept[:4]}"
    board.apply({"name": task_id, "handler": {"use": "outside", "side_effects": False}})
    body = f"JSON.stringify({{type: '{task_id}', task_id: '{task_id}'}})"
    execution = call("POST", "/tasks?wait=30", body, options={"timeout": 1000}, headers={"Accept": accept})
    assert execution.status == "error"
    assert "aborted" in execution.error["message"]
    board.wait(task_id, "pending")
    [claim] = board.post("/claims", {"worker": "w", "types": [task_id]}).json()["data"]
    assert claim["task"]["task_id"] == task_id
    board.post(f"/claims/{claim['claim_id']}/complete", {"result": {"n": 8}}).raise_for_status()
    assert board.wait(task_id, "done")["result"] == {"n": 8}


def test_a_stream_comes_whole_as_text(call: Caller) -> None:
    body = "JSON.stringify({type: 'echo', task_id: 'streamed', payload: {n: 7}})"
    [item] = call("POST", "/tasks", body, headers={"Accept": "text/event-stream"}).output("Call")
    assert "event: end" in item["data"]
