"""One board for the whole run, at one address, so that n8n finds it again after it was down."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import httpx2

from tests.n8n.server import PATIENCE, wait_until
from tests.rig.board import UNHANDLED, BoardProcess, board_command, board_environment
from tests.rig.ports import free_port
from tests.rig.reaper import Reaper


class TheBoard:
    """`board up` with a folder of its own. `stop()` and `start()`: the same board at the same address."""

    def __init__(self, folder: Path, reaper: Reaper, env: dict[str, str] | None = None) -> None:
        self._folder, self._reaper = folder, reaper
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        own = {"BOARD_PUBLIC_URL": self.url, "BOARD_ALLOW_PRIVATE_TARGETS": "127.0.0.1", **(env or {})}
        self._env = board_environment(folder, own)
        self.log_file = folder / "board.log"
        self.process: BoardProcess | None = None

    def start(self) -> None:
        with self.log_file.open("ab") as log:
            process = subprocess.Popen(
                [*board_command(), "up", "--port", str(self._port)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=self._env,
                start_new_session=True,
            )
        self.process = BoardProcess(process, self.url, self.log_file, self._reaper)
        self.process.wait_until_up()
        self.api = self.process.api

    def stop(self) -> None:
        assert self.process is not None
        self.process.stop()

    def close(self) -> None:
        self.stop()
        assert not UNHANDLED.search(self.log_file.read_text(errors="replace")), "an error nobody handled: see board.log"

    # -- what tests ask of it -----------------------------------------------------------------------------------------

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """The JSON of a GET that must succeed."""
        answer: dict[str, Any] = self.api.get(path, params=query).raise_for_status().json()
        return answer

    def post(self, path: str, body: dict[str, Any] | None = None) -> httpx2.Response:
        return self.api.post(path, json=body or {})

    def apply(self, *types: dict[str, Any], connections: list[dict[str, Any]] | None = None) -> None:
        """Task types, and connections."""
        self.post("/types", {"types": list(types), "connections": connections or []}).raise_for_status()

    def task(self, task_id: str) -> dict[str, Any]:
        return self.get(f"/tasks/{task_id}")

    def tasks(self, **filters: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get("/tasks", limit=200, **filters)["data"]
        return found

    def kinds(self, task_id: str) -> list[str]:
        """The kinds of its events, oldest first."""
        return [event["kind"] for event in self.get(f"/tasks/{task_id}/events")["data"]]

    def wait(self, task_id: str, *statuses: str, timeout: float = PATIENCE) -> dict[str, Any]:
        """Wait until the task has one of these statuses; the task."""

        def there() -> dict[str, Any] | None:
            answer = self.api.get(f"/tasks/{task_id}")
            return answer.json() if answer.status_code == 200 and answer.json()["status"] in statuses else None

        return wait_until(there, f"{task_id} is {' or '.join(statuses)}", timeout)
