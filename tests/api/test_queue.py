"""/queue: what waits, and what people change about it while it runs."""

from __future__ import annotations

import pytest

from tests.api.conftest import Api


def test_depth_per_lane_and_status(one_api: Api) -> None:
    for number, priority in enumerate(["P0", "P3", "P3"]):
        one_api.post("/tasks", json={"type": "trial", "task_id": f"T-{number}", "priority": priority})
    later = {"type": "trial", "task_id": "later", "priority": "P3", "run_after": "2099-01-01T00:00:00Z"}
    one_api.post("/tasks", json=later)
    queue = one_api.get("/queue").json()
    lanes = {lane["lane"]: (lane["ready"], lane["later"]) for lane in queue["lanes"]}
    assert lanes == {"P0": (1, 0), "P1": (0, 0), "P2": (0, 0), "P3": (2, 1)}
    assert queue["status"] == {"pending": 4, "running": 0, "needs_review": 0, "retrying": 0}
    assert (queue["weights"], queue["windows"], queue["paused"], queue["paused_types"]) == (
        [16, 5, 2, 1],
        [],
        False,
        [],
    )


def test_weights_and_windows_are_changed_and_echoed(one_api: Api) -> None:
    window = {"from": "22:00", "to": "06:00", "days": ["Fri"], "weights": [1, 1, 1, 9]}
    answer = one_api.patch("/queue", json={"weights": [4, 3, 2, 1], "windows": [window]})
    assert (answer.status_code, answer.json()["weights"], answer.json()["windows"]) == (200, [4, 3, 2, 1], [window])
    assert one_api.patch("/queue", json={"weights": None}).json()["weights"] == [16, 5, 2, 1]
    assert one_api.get("/queue").json()["windows"] == [window]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"weights": [1, 2, 3]}, "weights"),
        ({"weights": [0, 1, 1, 1]}, "weights"),
        ({"windows": [{"from": "9 o'clock", "to": "10:00", "weights": [1, 1, 1, 1]}]}, "windows"),
        ({"speed": 1}, "speed"),
    ],
)
def test_a_wrong_change_is_refused_by_name_and_changes_nothing(one_api: Api, body: object, field: str) -> None:
    answer = one_api.patch("/queue", json=body)
    assert answer.status_code == 422
    assert field in answer.json()["message"]
    assert one_api.get("/queue").json()["weights"] == [16, 5, 2, 1]


def test_a_pause_is_shown_on_the_task_and_ends(one_api: Api) -> None:
    one_api.post("/tasks", json={"type": "trial", "task_id": "T-1"})
    assert one_api.post("/queue/pause", json={"type": "trial"}).json()["paused_types"] == ["trial"]
    assert one_api.get("/tasks/T-1").json()["waiting_for"]["code"] == "paused"
    assert one_api.post("/queue/resume", json={"type": "trial"}).json()["paused_types"] == []
    assert one_api.get("/tasks/T-1").json()["waiting_for"]["code"] == "no_worker"
    assert one_api.post("/queue/pause").json()["paused"] is True
    assert one_api.get("/tasks/T-1").json()["waiting_for"]["code"] == "paused"


def test_a_type_that_does_not_exist_cannot_be_paused(one_api: Api) -> None:
    answer = one_api.post("/queue/pause", json={"type": "nope"})
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_type")


def test_a_deadline_is_kept_and_shown(one_api: Api) -> None:
    made = one_api.post("/tasks", json={"type": "trial", "deadline_at": "2099-01-01T08:00:00+08:00"})
    assert (made.status_code, made.json()["deadline_at"]) == (201, "2099-01-01T00:00:00Z")
    assert made.json()["deadline_missed"] is False
