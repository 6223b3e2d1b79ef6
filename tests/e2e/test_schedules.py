"""B009: one firing per due time over several processes, through changes and deaths."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2

from tests.rig.board import RunBoard, StartBoard
from tests.rig.trial_package import TrialPackage

NAP = "types: [{name: nap, handler: {use: nap, side_effects: false}, require_id: false}]\n"


def until(holds: Callable[[], Any], timeout: float = 40.0) -> Any:
    begin = time.monotonic()
    while not (found := holds()):
        assert time.monotonic() - begin < timeout, "it never came to that"
        time.sleep(0.1)
    return found


def fired(api: httpx2.Client, name: str) -> list[str]:
    """Due times whose task is in, oldest first."""
    return [it["due_at"] for it in reversed(api.get(f"/schedules/{name}").json()["firings"]) if it["task_id"]]


def leader(api: httpx2.Client) -> str | None:
    rows = api.get("/workers?limit=100").json()["data"]
    return next((row["name"] for row in rows if row["leader"] and row["status"] == "alive"), None)


def test_four_processes_fire_each_due_time_once(
    board_process: StartBoard, run_board: RunBoard, database_url: str, trial_package: TrialPackage, tmp_path: Path
) -> None:
    """Four workers; a schedule by the minute, one whose time is changed, and a leader that is killed."""
    at = trial_package.clock(database_url)
    env = {**trial_package.environment, "BOARD_DATABASE_URL": database_url}
    (tmp_path / "nap.yaml").write_text(NAP)
    assert run_board("types", "apply", "nap.yaml", env=env).returncode == 0
    front, *workers = [board_process(role, env=env, wait=False) for role in ("api", *4 * ["worker"])]
    for process in (front, *workers):
        process.wait_until_up()
    api = front.api

    def go_to(minute: int, second: float) -> None:
        """The board's clock to that minute of a day to come."""
        at((start - datetime.now(UTC)).total_seconds() + 60 * minute + second)

    start = datetime(2031, 5, 6, 12, 0, tzinfo=UTC)
    go_to(0, 57)
    task = {"type": "nap"}
    assert api.post("/schedules", json={"name": "each", "cron": "* * * * *", "task": task}).status_code == 201
    moved = api.post("/schedules", json={"name": "moved", "cron": "2 12 * * *", "task": task}).json()
    assert moved["next_at"] == "2031-05-06T12:02:00Z"
    until(lambda: fired(api, "each") == ["2031-05-06T12:01:00Z"])

    # Changed before it fires: the old time passes, only the new one counts.
    assert api.patch("/schedules/moved", json={"version": 1, "cron": "3 12 * * *"}).status_code == 200
    go_to(1, 35)  # after such a jump they are silent until they say that they are alive
    name = until(lambda: leader(api))
    # The leader dies shortly before a due time; another one leads within 15 s, and fires it.
    [dead] = [it for it in workers if f"-{it.pid}-" in name]
    os.kill(dead.pid, signal.SIGKILL)
    died = time.monotonic()
    dead.wait()
    until(lambda: leader(api) not in (None, name))
    assert time.monotonic() - died < 15
    until(lambda: "2031-05-06T12:02:00Z" in fired(api, "each"))
    assert fired(api, "moved") == []
    go_to(2, 58)
    until(lambda: fired(api, "moved") == ["2031-05-06T12:03:00Z"])
    until(lambda: len(fired(api, "each")) == 3)

    done = until(lambda: _all_done(api, 4))
    by_origin = Counter((it["origin"]["workflow_id"], it["origin"]["execution_id"]) for it in done)
    assert set(by_origin.values()) == {1}, "one task for each due time"
    assert sorted(by_origin) == [
        ("each", "2031-05-06T12:01:00Z"),
        ("each", "2031-05-06T12:02:00Z"),
        ("each", "2031-05-06T12:03:00Z"),
        ("moved", "2031-05-06T12:03:00Z"),
    ]


def _all_done(api: httpx2.Client, many: int) -> list[dict[str, Any]] | None:
    data: list[dict[str, Any]] = api.get("/tasks?limit=100").json()["data"]
    return data if len(data) >= many and all(it["status"] == "done" for it in data) else None
