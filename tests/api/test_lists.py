"""Lists: pages, order and filters."""

from __future__ import annotations

import pytest

from tests.api.conftest import Api


def pages(api: Api, query: str) -> list[str]:
    """All IDs of a list, page by page, by `next_url`."""
    seen: list[str] = []
    path = f"/tasks?{query}"
    while True:
        body = api.get(path).json()
        assert set(body) == {"data", "next_cursor", "next_url"}
        seen += [task["task_id"] for task in body["data"]]
        assert (body["next_cursor"] is None) == (body["next_url"] is None)
        if body["next_url"] is None:
            return seen
        assert body["next_url"].startswith(f"{api.board.settings.public_url}/api/v1/tasks?")
        assert len(seen) < 500
        path = body["next_url"].partition("/api/v1")[2]


@pytest.fixture
def filled(api: Api) -> Api:
    tasks = [
        {
            "type": "ask" if n % 3 == 0 else "trial",
            "task_id": f"T-{n:02}",
            "title": f"Title {n % 4} {'ÜBER' if n % 5 == 0 else 'plain'}",
            "priority": f"P{n % 4}",
            "source": ["web", "mail", None][n % 3],
            "tags": [["vip", "a,b"], ["VIP"], ['say "hi"'], ["50%_off"]][n % 4],
        }
        for n in range(25)
    ]
    assert api.post("/tasks/bulk", json={"tasks": tasks}).json()["created"] == 25
    for n in (3, 7):
        api.post(f"/tasks/T-{n:02}/cancel")
    return api


def names(*numbers: int) -> list[str]:
    return [f"T-{n:02}" for n in numbers]


SORTS = ["", "-created_at", "created_at", "priority", "-priority,title", "title,-task_id", "status,type", "-updated_at"]


def test_every_task_once_in_any_order(filled: Api) -> None:
    tasks = {task["task_id"]: task for task in filled.get("/tasks?limit=200").json()["data"]}
    for sort in SORTS:
        for limit in (4, 200):
            seen = pages(filled, f"sort={sort}&limit={limit}")
            assert sorted(seen) == names(*range(25))
            first = sort.partition(",")[0]
            key = first.removeprefix("-")
            if key in ("priority", "created_at", "updated_at"):  # the order of text is the database's own
                shown = [tasks[name][key] for name in seen]
                assert shown == sorted(shown, reverse=first.startswith("-"))


def test_a_batch_is_listed_in_the_order_it_was_sent(filled: Api) -> None:
    assert pages(filled, "sort=created_at&limit=200") == names(*range(25))
    assert pages(filled, "limit=200") == names(*reversed(range(25)))


FILTERS = [
    ("status=cancelled", [7, 3]),
    ("status=cancelled,done", [7, 3]),
    ("status=done", []),
    ("type=ask&priority=P0", [24, 12, 0]),
    ("priority=P0,P1&source=web", [24, 21, 12, 9, 0]),
    ("source=mail&priority=P3", [19, 7]),
    ("tag=VIP&source=web", [21, 9]),
    ("tag=vip&source=web", [24, 12, 0]),
    ("tag=vip,VIP&source=web", [24, 21, 12, 9, 0]),
    ("tag=say%20%22hi%22&source=web", [18, 6]),
    ("tag=hi", []),
    ("tag=50%25_off&source=web", [15, 3]),
    ("tag=50%25%25off", []),
    ("q=T-1", [19, 18, 17, 16, 15, 14, 13, 12, 11, 10]),
    ("q=über&priority=P0", [20, 0]),
    ("q=Über&priority=P0", [20, 0]),
    ("q=%25", []),
    ("q=_", []),
    ("task_id=T-05", [5]),
    ("created_to=2026-01-01T00:00:00%2B08:00", []),
    ("created_from=2026-01-01T00:00:00%2B08:00&status=cancelled", [7, 3]),
    ("created_from=2026-01-01T00:00:00+08:00&status=cancelled", [7, 3]),
    ("created_from=2026-01-01T00:00:00Z&created_to=2099-01-01T00:00:00Z&status=cancelled", [7, 3]),
    ("type=nope", []),
    ("status=%20cancelled%20,", [7, 3]),
    ("status=%20cancelled%20,&type=,", [7, 3]),
]


def test_filters(filled: Api) -> None:
    for query, numbers in FILTERS:
        assert pages(filled, f"{query}&limit=3") == names(*numbers), query


def test_new_tasks_do_not_disturb_the_pages(filled: Api) -> None:
    seen: list[str] = []
    cursor = ""
    while cursor is not None:
        body = filled.get(f"/tasks?limit=5&cursor={cursor}").json()
        seen += [task["task_id"] for task in body["data"]]
        filled.submit(f"new-{len(seen)}")
        cursor = body["next_cursor"]
    assert seen == names(*reversed(range(25)))


def test_a_cursor_of_another_order_is_refused(filled: Api) -> None:
    cursor = filled.get("/tasks?limit=5").json()["next_cursor"]
    assert filled.get(f"/tasks?limit=5&cursor={cursor}&sort=title").json()["code"] == "bad_cursor"


def test_events_come_by_pages_too(api: Api) -> None:
    version = api.submit()["version"]
    for n in range(7):
        version = api.patch("/tasks/T-1", json={"version": version, "title": f"n {n}"}).json()["version"]
    seen: list[int] = []
    path = "/tasks/T-1/events?limit=3"
    while path:
        body = api.get(path).json()
        seen += [event["seq"] for event in body["data"]]
        path = (body["next_url"] or "").partition("/api/v1")[2]
    assert seen == list(range(1, 9))
    assert all(isinstance(event["id"], str) for event in api.events())
