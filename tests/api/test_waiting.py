"""Callers who wait on the line."""

from __future__ import annotations

import threading
import time

import pytest

from tests.api.conftest import Api, OpenApi


def test_a_task_that_ends_is_answered_with_its_result(open_api: OpenApi) -> None:
    api = open_api(work=True)
    body = {"type": "trial", "task_id": "T-1", "payload": {"n": 1}}
    first = api.post("/tasks?wait=30", json=body)
    assert (first.status_code, first.json()["status"], first.json()["result"]) == (201, "done", {"n": 1})
    again = api.post("/tasks?wait=30", json=body)
    assert (again.status_code, again.json()["duplicate"], again.json()["result"]) == (200, True, {"n": 1})
    assert api.get("/tasks/T-1?wait=30").status_code == 200
    person = api.post("/tasks?wait=30", json={"type": "ask", "task_id": "A-1"})
    assert (person.status_code, person.json()["status"]) == (201, "needs_review")
    assert person.json()["waiting_for"]["code"] == "person"
    assert person.json()["review"]["reason"] == "direct"


def test_a_task_that_does_not_end_in_time_is_202_with_the_state_so_far(api: Api) -> None:
    start = time.monotonic()
    answer = api.post("/tasks?wait=0.3", json={"type": "trial", "task_id": "T-1"})
    assert (answer.status_code, answer.json()["status"]) == (202, "pending")
    assert 0.3 <= time.monotonic() - start < 10
    again = api.post("/tasks?wait=0.1", json={"type": "trial", "task_id": "T-1"})
    assert (again.status_code, again.json()["duplicate"]) == (202, True)
    look = api.get("/tasks/T-1?wait=0.1")
    assert (look.status_code, look.json()["status"]) == (202, "pending")
    assert api.get("/tasks/T-1?wait=0").status_code == 200
    assert api.get("/tasks/T-1?wait=").status_code in (200, 422)


def test_who_waits_hears_of_an_end_at_once(api: Api) -> None:
    api.submit("T-1")
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(api.get("/tasks/T-1?wait=30")))
    waiting.start()
    api.post("/tasks/T-1/cancel")
    waiting.join(10)
    assert answers[0].json()["status"] == "cancelled"


@pytest.mark.parametrize("wait", ["61", "-1", "nan", "inf", "soon"])
def test_a_wait_that_does_not_fit_makes_no_task(one_api: Api, wait: str) -> None:
    answer = one_api.post(f"/tasks?wait={wait}", json={"type": "trial", "task_id": "T-1"})
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, "wait")
    assert one_api.get("/tasks/T-1").status_code == 404


def test_an_empty_wait_means_not_waiting(one_api: Api) -> None:
    made = one_api.post("/tasks?wait=", json={"type": "trial", "task_id": "empty-wait"})
    assert (made.status_code, made.json()["status"]) == (201, "pending")
    assert one_api.get("/tasks/empty-wait?wait=").status_code == 200
