"""A real n8n for tests: one process for the whole run, driven by its own public API.

How to use it (fixtures in tests/n8n/conftest.py; run by `make test-n8n`, or `pytest --n8n tests/n8n`):

    def test_a_flow(n8n: N8n, flows: Flows) -> None:
        flow = flows.sample("intake", board=board.url)   # a shipped flow, its Settings node filled in; active
        answer = flow.post("board-intake", json={"id": "1"})
        [execution] = flow.ended(1)                       # what n8n itself has recorded of it
        assert execution.output("Hand in")[0]["task_id"] == "webhook:1"

`flows.make(nodes, connections)` makes a flow of the test's own. `n8n.credential(name, kind, data)` stores a credential;
nodes find it by its name. `n8n.kill()` and `n8n.start()` are a crash and what follows: address, database and API key
stay. `N8n(folder, reaper, env={…}, packages=[…])` is a second n8n with settings or community packages of its own.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from tests.rig.need import missing
from tests.rig.ports import free_port
from tests.rig.reaper import Reaper

VERSION = os.environ.get("N8N_VERSION") or "2.40.7"
OLD = VERSION.startswith("1.")
SAMPLES = Path(__file__).parents[2] / "sample_flows" / "n8n"
START_TIMEOUT = 120.0  # seconds; an empty database takes 15 to 20 on an idle machine
PATIENCE = 45.0  # seconds for anything that n8n is to do by itself
ENDED = ("success", "error", "crashed", "canceled")
T = TypeVar("T")
# What would look outside by itself, or is of no use here.
QUIET = {
    "N8N_DIAGNOSTICS_ENABLED": "false",
    "N8N_VERSION_NOTIFICATIONS_ENABLED": "false",
    "N8N_PERSONALIZATION_ENABLED": "false",
    "N8N_TEMPLATES_ENABLED": "false",
    "N8N_HIRING_BANNER_ENABLED": "false",
    "N8N_DYNAMIC_BANNERS_ENABLED": "false",
    # An unknown name here stops the start, and 1.x knows one of them only.
    "N8N_DISABLED_MODULES": "insights" if OLD else "mcp-registry,instance-ai,insights,agents,chat-hub",
}


def home() -> Path:
    """Where tests/n8n/install.sh puts things; the same rule as there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("N8N_HOME") or cache / "ai-task-board" / "n8n")


def wait_until(look: Callable[[], T | None], what: str, timeout: float = PATIENCE) -> T:
    """Look until there is something, and return it. AssertionError with `what` when the time is over."""
    end = time.monotonic() + timeout
    while not (found := look()):
        assert time.monotonic() < end, f"{what}: not within {timeout:g} s"
        time.sleep(0.1)
    return found


class N8n:
    """One n8n: its folder, its address, its process while it runs."""

    def __init__(
        self, folder: Path, reaper: Reaper, env: Mapping[str, str] | None = None, packages: Sequence[Path] = ()
    ) -> None:
        """packages: folders of built community packages (package.json and dist), loaded under their own names."""
        self.folder, self._reaper = folder, reaper
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        self.environment = self._own_environment(port, env or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._client = httpx2.Client(base_url=self.url, timeout=60, trust_env=False)
        self._key = ""
        self._credentials: dict[str, str] = {}  # name -> id
        self.log_file = folder / "n8n.log"
        for package in packages:
            name = json.loads((package / "package.json").read_text())["name"]
            target = folder / ".n8n" / "nodes" / "node_modules" / name
            shutil.copytree(package / "dist", target / "dist")
            shutil.copy(package / "package.json", target)

    def _own_environment(self, port: int, env: Mapping[str, str]) -> dict[str, str]:
        [*nodes] = home().glob("node/node_modules/node-linux-*/bin")
        if not nodes or not (self.program / ".whole").exists():
            missing(f"n8n {VERSION}", "make install-n8n")
        own = {
            "PATH": f"{nodes[0]}:{os.environ['PATH']}",
            "N8N_USER_FOLDER": str(self.folder),
            "N8N_PORT": str(port),
            "N8N_LISTEN_ADDRESS": "127.0.0.1",
            "N8N_HOST": "127.0.0.1",
            "WEBHOOK_URL": f"{self.url}/",
            "N8N_RUNNERS_BROKER_LISTEN_ADDRESS": "127.0.0.1",
            "N8N_RUNNERS_BROKER_PORT": str(free_port()),
            "N8N_SECURE_COOKIE": "false",
            "N8N_ENCRYPTION_KEY": "a key for tests",
            "GENERIC_TIMEZONE": "UTC",
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("N8N_", "BOARD_"))}
        return {**kept, **QUIET, **own, **env}

    @property
    def program(self) -> Path:
        return home() / f"n8n-{VERSION}"

    # -- the process --------------------------------------------------------------------------------------------------

    def command(self, *arguments: str, timeout: float = 120) -> str:
        """Run a command of n8n to its end, such as `import:workflow`, while the server is not running. Its output."""
        done = subprocess.run(
            ["node", str(self.program / "node_modules/n8n/bin/n8n"), *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, f"n8n {' '.join(arguments)}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    def start(self, *, wait: bool = True) -> None:
        """Start the server, and wait until it is ready (`wait=False`: it is not waited for)."""
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                ["node", str(self.program / "node_modules/n8n/bin/n8n"), "start"],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._reaper.guard(self._process.pid)
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Ready is more than alive: /healthz answers before anything works, and on 1.x so does readiness."""

        def ready() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, f"n8n has ended:\n{self.log[-3000:]}"
            try:
                probes = [self._client.get(path) for path in ("/healthz/readiness", "/rest/settings")]
            except httpx2.TransportError:
                return False
            return all(it.status_code == 200 for it in probes) and "json" in probes[1].headers["content-type"]

        wait_until(ready, "n8n is ready", START_TIMEOUT)
        if not self._key:
            self._set_up()

    def stop(self) -> None:
        """SIGTERM, as a service manager ends it."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: a crash."""
        self._end(signal.SIGKILL)

    def _end(self, signum: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signum)
            self._process.wait(60)
            self._reaper.release(self._process.pid)

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    # -- its API ------------------------------------------------------------------------------------------------------

    def _set_up(self) -> None:
        """The owner and a key with every right there is."""
        owner = {"email": "owner@example.org", "firstName": "A", "lastName": "B", "password": "Password123"}
        self._client.post("/rest/owner/setup", json=owner).raise_for_status()
        scopes = self._client.get("/rest/api-keys/scopes").raise_for_status().json()["data"]
        body = {"label": "tests", "scopes": scopes, "expiresAt": None}
        answer = self._client.post("/rest/api-keys", json=body).raise_for_status().json()
        self._key = answer["data"]["rawApiKey"]

    def api(self, method: str, path: str, **more: Any) -> Any:
        """One call of the public API; its JSON."""
        answer = self._client.request(method, f"/api/v1{path}", headers={"X-N8N-API-KEY": self._key}, **more)
        assert answer.status_code < 300, f"{method} {path}: {answer.status_code} {answer.text[:2000]}"
        return answer.json() if answer.content else None

    def credential(self, name: str, kind: str, data: Mapping[str, Any]) -> None:
        """Store a credential, such as ("Board API key", "httpHeaderAuth", {"name": "X-API-Key", "value": "…"})."""
        stored = self.api("POST", "/credentials", json={"name": name, "type": kind, "data": dict(data)})
        self._credentials[name] = stored["id"]

    def create(self, flow: Mapping[str, Any]) -> Flow:
        """Store a flow, not active yet. Credentials that its nodes name get their ids, as the editor does it."""
        body = {key: copy.deepcopy(flow[key]) for key in ("name", "nodes", "connections", "settings")}
        for node in body["nodes"]:
            for reference in node.get("credentials", {}).values():
                reference["id"] = self._credentials.get(reference["name"], "")
        return Flow(self, self.api("POST", "/workflows", json=body)["id"])

    def call(self, method: str, path: str, **more: Any) -> httpx2.Response:
        """Any address of this n8n, as a stranger calls it."""
        return httpx2.request(method, f"{self.url}{path}", timeout=60, trust_env=False, **more)


class Flow:
    """One stored workflow."""

    def __init__(self, n8n: N8n, id_: str) -> None:
        self.n8n, self.id = n8n, id_

    def activate(self) -> None:
        self.n8n.api("POST", f"/workflows/{self.id}/activate")

    def deactivate(self) -> None:
        self.n8n.api("POST", f"/workflows/{self.id}/deactivate")

    def post(self, path: str, **more: Any) -> httpx2.Response:
        """Call its webhook. Activation takes n8n a moment, in which the address answers 404."""

        def registered() -> httpx2.Response | None:
            answer = self.n8n.call("POST", f"/webhook/{path}", **more)
            return None if answer.status_code == 404 and "not registered" in answer.text else answer

        return wait_until(registered, f"the webhook {path} is registered")

    def executions(self, status: str | None = None) -> list[Execution]:
        """What it has run, oldest first."""
        query = {"workflowId": self.id, "includeData": "true", "limit": 100}
        found = self.n8n.api("GET", "/executions", params=query | ({"status": status} if status else {}))
        return [Execution(one) for one in reversed(found["data"])]

    def ended(self, count: int = 1, timeout: float = PATIENCE) -> list[Execution]:
        """Wait until that many executions have ended; those that have, oldest first."""
        return self._wait(count, ENDED, timeout)

    def waiting(self, count: int = 1, timeout: float = PATIENCE) -> list[Execution]:
        """Wait until that many executions are parked in a Wait node; those that are."""
        return self._wait(count, ("waiting",), timeout)

    def _wait(self, count: int, statuses: Sequence[str], timeout: float) -> list[Execution]:
        def enough() -> list[Execution] | None:
            # n8n 1 lists those that wait only when it is asked for them.
            asked = statuses[0] if len(statuses) == 1 else None
            found = [one for one in self.executions(asked) if one.status in statuses]
            return found if len(found) >= count else None

        return wait_until(enough, f"{count} executions are {' or '.join(statuses)}", timeout)


class Execution:
    """What n8n has recorded of one run."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.id, self.status = str(row["id"]), str(row["status"])
        self._result: Mapping[str, Any] = (row.get("data") or {}).get("resultData") or {}

    @property
    def error(self) -> dict[str, Any]:
        """What ended it; empty where nothing did. `description` is what people read below the headline."""
        return self._result.get("error") or {}

    @property
    def ran(self) -> list[str]:
        """The nodes that ran."""
        return list(self._result.get("runData", {}))

    def output(self, node: str, index: int = 0, run: int = -1) -> list[dict[str, Any]]:
        """The items that a node gave on its output `index` in one of its runs, the last one when not told."""
        outputs = self._result["runData"][node][run]["data"]["main"]
        return [item["json"] for item in outputs[index] or []] if index < len(outputs) else []

    def milliseconds(self, node: str) -> int:
        """How long it took, its tries together."""
        return int(self._result["runData"][node][-1]["executionTime"])

    def runs(self, node: str) -> int:
        """How often a node ran."""
        return len(self._result.get("runData", {}).get(node, []))


class Flows:
    """The flows of one test: made active when they are asked for, switched off when it ends."""

    def __init__(self, n8n: N8n) -> None:
        self._n8n = n8n
        self._active: list[Flow] = []

    def sample(self, file: str, *, every_seconds: int | None = None, **settings: Any) -> Flow:
        """A shipped flow with values of its Settings node. every_seconds: in place of its own schedule."""
        flow = sample(file)
        fields = {it["name"]: it for it in node(flow, "Settings")["parameters"]["assignments"]["assignments"]}
        for name, value in settings.items():
            fields[name]["value"] = value
        if every_seconds is not None:
            rule = {"interval": [{"field": "seconds", "secondsInterval": every_seconds}]}
            node(flow, "Schedule")["parameters"]["rule"] = rule
        return self.add(flow)

    def make(self, *nodes: Mapping[str, Any], connections: Mapping[str, Any] | None = None, **settings: Any) -> Flow:
        """A flow of the test's own; without `connections` the nodes follow one another."""
        names = [str(it["name"]) for it in nodes]
        chain = {a: {"main": [[{"node": b, "type": "main", "index": 0}]]} for a, b in pairwise(names)}
        own = {"executionOrder": "v1", **settings}
        return self.add({"name": "A test", "nodes": list(nodes), "connections": connections or chain, "settings": own})

    def add(self, flow: Mapping[str, Any], *, active: bool = True) -> Flow:
        made = self._n8n.create(flow)
        self._active.append(made)
        if active:
            made.activate()
        return made

    @property
    def last(self) -> Flow:
        """The one that was made last."""
        return self._active[-1]

    def close(self) -> None:
        for flow in self._active:
            flow.deactivate()


def sample(file: str) -> dict[str, Any]:
    """A shipped flow as it is."""
    flow: dict[str, Any] = json.loads((SAMPLES / f"{file}.json").read_text("utf-8"))
    return flow


def node(flow: Mapping[str, Any], name: str) -> dict[str, Any]:
    """One node of a flow, by its name."""
    [found] = [it for it in flow["nodes"] if it["name"] == name]
    assert isinstance(found, dict)
    return found
