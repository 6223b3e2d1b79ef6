"""POST /tasks/bulk: each item is judged by itself."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.api.conftest import Api

GOOD = {"type": "trial", "task_id": "T-1", "payload": {"n": 1}}


def outcomes(body: dict[str, Any]) -> list[tuple[int, Any, str]]:
    return [(item["index"], item["task_id"], item["status"]) for item in body["data"]]


def test_bad_items_do_not_spoil_the_rest(api: Api) -> None:
    api.submit("OLD", payload={"n": 1})
    items = [
        GOOD,
        {"type": "nope", "task_id": "T-2"},
        {"type": "trial", "task_id": "OLD", "payload": {"n": 2}},
        5,
        None,
        {"type": "trial", "task_id": "a/b"},
        {"type": "trial", "task_id": "T-3", "colour": "red"},
        GOOD | {"payload": {"n": 9}},
        {"type": "trial", "task_id": "OLD", "on_duplicate": "reject"},
        {"type": "trial", "task_id": "T-4", "on_duplicate": "reject"},
        {"type": "trial", "Idempotency-Key": "k 1"},
        {"type": "trial", "needs": ["T-1"]},
    ]
    answer = api.post("/tasks/bulk", json={"tasks": items})
    body = answer.json()
    assert answer.status_code == 200
    assert outcomes(body) == [
        (0, "T-1", "created"),
        (1, "T-2", "error"),
        (2, "OLD", "duplicate"),
        (3, None, "error"),
        (4, None, "error"),
        (5, "a/b", "error"),
        (6, "T-3", "error"),
        (7, "T-1", "duplicate"),
        (8, "OLD", "error"),
        (9, "T-4", "created"),
        (10, "k 1", "created"),
        (11, None, "error"),
    ]
    assert (body["created"], body["duplicates"], body["errors"]) == (3, 2, 7)
    assert (body["data"][2]["payload_differs"], body["data"][7]["payload_differs"]) == (True, True)
    errors = {item["index"]: (item["code"], item["message"]) for item in body["data"] if item["status"] == "error"}
    assert errors[1][0] == "unknown_type"
    assert errors[3][1] == errors[4][1] == "body: must be a JSON object."
    assert "“/”" in errors[5][1]
    assert "colour" in errors[6][1]
    assert errors[8][0] == "duplicate"
    assert "not yet supported" in errors[11][1]
    assert api.task("T-1")["payload"] == {"n": 1}, "of twins in one call the first counts"


def test_bad_json_in_an_item_is_that_items_error(api: Api) -> None:
    text = """{"tasks": [
        {"type": "trial", "task_id": "A"},
        {"type": "trial", "task_id": "B", "payload": {"score": NaN}},
        {"type": "trial", "task_id": "C", "title": "a\\u0000b"},
        {"type": "trial", "task_id": "D\\ud800"},
        {"type": "trial", "task_id": "E", "payload": {"n": %s}},
        {"type": "trial", "task_id": "F", "payload": {"n": 653247040368672768}}
    ]}"""
    body = api.post("/tasks/bulk", content=text % ("9" * 5000)).json()
    assert [item["status"] for item in body["data"]] == ["created", "error", "error", "error", "error", "created"]
    assert [item["task_id"] for item in body["data"]] == ["A", "B", "C", None, "E", "F"]
    assert "payload.score" in body["data"][1]["message"]
    assert '"n":653247040368672768' in api.get("/tasks/F").text


def test_one_object_a_line(api: Api) -> None:
    lines = [
        json.dumps(GOOD),
        "",
        "{nope",
        '{"type":"trial","task_id":"T-2","payload":{"x":Infinity}}',
        '{"type":"trial","task_id":"T-3"}\r',
        "[]",
    ]
    for content in ("\n".join(lines), "\n".join(lines) + "\n"):
        body = api.post("/tasks/bulk", content=content, headers={"Content-Type": "application/x-ndjson"}).json()
        assert [item["status"] != "error" for item in body["data"]] == [True, False, False, True, False]
        assert [item["index"] for item in body["data"]] == [0, 1, 2, 3, 4]
    assert "not valid JSON" in body["data"][1]["message"]
    (one,) = api.post("/tasks/bulk", content='{"type":"trial","task_id":"T-9"}').json()["data"]
    assert (one["task_id"], one["status"]) == ("T-9", "created")
    pretty = json.dumps({"tasks": [GOOD]}, indent=2)
    assert api.post("/tasks/bulk", content=pretty).json()["duplicates"] == 1


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ("", 400),
        ("nope", 400),
        ("{", 400),
        ("[" * 50_000, 422),
        ("5", 422),
        ("null", 422),
        ("{}", 422),
        ('[{"type":"trial"}]', 422),
        ('{"tasks":{}}', 422),
        ('{"tasks":[]}', 422),
        ('{"tasks":null}', 422),
        ('{"tasks":[{"type":"trial"}],"dry_run":true}', 422),
        ('{"task_id":"T-1"}', 422),
        ('{"tasks":[' + ",".join(["1"] * 1001) + "]}", 422),
        ("{}\n" * 1001, 422),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_body_that_is_no_list_of_tasks(one_api: Api, content: str, status: int) -> None:
    answer = one_api.post("/tasks/bulk", content=content)
    assert answer.status_code == status
    if status == 422:
        assert answer.json()["details"][0]["field"] in ("tasks", "dry_run")


def test_a_thousand_at_once_and_again(api: Api) -> None:
    tasks = [{"type": "trial", "task_id": f"T-{n}", "priority": f"P{n % 4}"} for n in range(1000)]
    assert api.post("/tasks/bulk", json={"tasks": tasks}).json()["created"] == 1000
    assert api.post("/tasks/bulk", json={"tasks": tasks}).json()["duplicates"] == 1000


def test_callers_with_the_same_tasks_in_other_orders_do_not_block_each_other(api: Api) -> None:
    names = [f"T-{n}" for n in range(60)]
    orders = [names, names[::-1], names[30:] + names[:30], names[::2] + names[1::2]]
    start = threading.Barrier(len(orders))

    def send(order: list[str]) -> dict[str, Any]:
        start.wait()
        body: dict[str, Any] = {}
        for turn in range(4):
            tasks = [{"type": "trial", "task_id": name, "payload": {"turn": turn, "first": order[0]}} for name in order]
            answer = api.post("/tasks/bulk", json={"tasks": tasks})
            assert answer.status_code == 200
            body[str(turn)] = answer.json()["created"]
        return body

    with ThreadPoolExecutor(len(orders)) as threads:
        created = [sum(body.values()) for body in threads.map(send, orders)]
    assert sum(created) == 60
