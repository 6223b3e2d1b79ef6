"""POST /mcp: with the client of the SDK over real HTTP, and as anybody else sends it."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from board.tools.verbs import VERBS
from tests.api.conftest import BOOTSTRAP, Api, OpenApi
from tests.rig.board import StartBoard
from tests.rig.need import missing
from tests.tools.conftest import DIRECT, OUTSIDE

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HEADERS = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {BOOTSTRAP}"}


@pytest.fixture
def sdk() -> None:
    if find_spec("mcp") is None:
        missing("the MCP SDK", "pip install 'ai-task-board[mcp]'")


@asynccontextmanager
async def connected(url: str, key: str = BOOTSTRAP, mode: str = "auto") -> AsyncIterator[Any]:
    """A client of the SDK; mode: `auto` by the newest protocol, `legacy` with a handshake as older clients do it."""
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False, verify=False) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


async def use(client: Any, name: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool(name, arguments)
    assert not answer.is_error, answer.content
    [content] = answer.content
    assert json.loads(content.text) == answer.structured_content
    found: dict[str, Any] = answer.structured_content
    return found


async def refusal(client: Any, name: str, **arguments: Any) -> str:
    answer = await client.call_tool(name, arguments)
    assert answer.is_error
    [content] = answer.content
    return str(content.text)


@pytest.mark.usefixtures("sdk")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_verb_is_a_tool_with_its_choices_objects_and_lists(one_api: Api, mode: str) -> None:
    async with connected(one_api.url, mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == [verb.name for verb in VERBS]
    for verb in VERBS:
        assert tools[verb.name].description == verb.about
        assert tools[verb.name].annotations.read_only_hint == verb.only_reads
    shape = tools["create_task"].input_schema
    assert shape["required"] == ["type"]
    assert shape["properties"]["payload"]["type"] == "object"
    assert shape["properties"]["priority"]["enum"] == ["P0", "P1", "P2", "P3"]
    assert shape["properties"]["tags"]["items"] == {"type": "string"}
    assert "failed" in tools["find_tasks"].input_schema["properties"]["status"]["items"]["enum"]
    assert {name for name, tool in tools.items() if tool.annotations.read_only_hint} == {
        "get_task",
        "find_tasks",
        "get_decision",
    }


@pytest.mark.usefixtures("sdk")
async def test_the_whole_round_by_the_client_of_the_sdk(open_api: OpenApi) -> None:
    api = open_api(work=True)
    api.types(DIRECT, OUTSIDE)
    async with connected(api.url) as client:
        filed = await use(client, "create_task", type="trial", payload={"n": 1}, task_id="A", tags=["x", "y"])
        assert filed["created"] is True
        task = await use(client, "get_task", task_id="A", wait_seconds=30)
        assert (task["status"], task["result"]) == ("done", {"n": 1})
        await use(client, "add_note", task_id="A", note="seen")
        found = await use(client, "find_tasks", tag=["y"], status=["done"])
        assert [task["task_id"] for task in found["tasks"]] == ["A"]
        await use(client, "create_task", type="call", task_id="C")
        reported = await use(client, "report_result", task_id="C", result={"ok": True}, confidence=0.9)
        assert reported["status"] == "done"
        asked = await use(client, "request_review", question="May I?", type="question")
        await use(client, "get_task", task_id=asked["task_id"], wait_seconds=30)
        api.post(f"/tasks/{asked['task_id']}/approve", json={})
        told = await use(client, "get_decision", task_id=asked["task_id"], wait_seconds=30)
        assert told["verdict"] == "approve"
    history = api.events("A")
    assert {(event["kind"], event["channel"]) for event in history} >= {("created", "mcp"), ("note", "mcp")}


@pytest.mark.usefixtures("sdk")
async def test_refusals_are_words_for_the_model(one_api: Api) -> None:
    async with connected(one_api.url) as client:
        assert await refusal(client, "get_task", task_id="none") == "There is no task “none”."
        assert "Its types are: ask, trial." in await refusal(client, "create_task", type="other")
        assert "task_id: is missing." in await refusal(client, "get_task")
        assert "it takes task_id" in await refusal(client, "get_task", task_id="A", nonsense=1)
        assert "create_task, get_task" in await refusal(client, "drop_table")


@pytest.mark.usefixtures("sdk")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"title": "a\0b"}, "title contains U+0000 (NUL)"),
        ({"payload": {"deep": ["\ud800"]}}, "payload.deep[0] contains U+D800"),
        ({"payload": {"n": float("inf")}}, "Infinity"),
        ({"payload": {"n": 10**5000}}, "cannot be read"),
        ({"payload": json.loads("[" * 70 + "]" * 70)}, "deeper than 64"),
    ],
)
async def test_what_cannot_be_kept_is_refused_as_in_every_body(
    one_api: Api, arguments: dict[str, Any], says: str
) -> None:
    from mcp_types import CallToolRequestParams

    from board.access.rights import CONSOLE
    from board.tools.mcp_server import Caller

    context = SimpleNamespace(request=SimpleNamespace(state=SimpleNamespace(actor=CONSOLE)))
    answer = await Caller(one_api.board)(
        context, CallToolRequestParams(name="create_task", arguments={"type": "trial", **arguments})
    )
    assert answer.is_error
    assert says in answer.content[0].text


@pytest.mark.usefixtures("sdk")
async def test_a_key_may_do_what_its_scopes_say(one_api: Api) -> None:
    one_api.submit("S")
    reader, own = one_api.as_key("read", name="mcp-read"), one_api.as_key("submit", name="mcp-submit")
    async with connected(one_api.url, reader.key) as client:
        assert (await use(client, "get_task", task_id="S"))["task_id"] == "S"
        assert "scope submit or admin" in await refusal(client, "create_task", type="trial")
    async with connected(one_api.url, own.key) as client:
        assert await refusal(client, "get_task", task_id="S") == "There is no task “S”."
        assert (await use(client, "create_task", type="trial", task_id="S-own"))["created"] is True


@pytest.mark.usefixtures("sdk")
async def test_a_failure_inside_says_nothing_of_it(
    open_api: OpenApi, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret of the house")

    api = open_api()
    monkeypatch.setattr("board.tools.looking.read.list_tasks", fail)
    async with connected(api.url) as client:
        said = await refusal(client, "find_tasks")
    assert "Something went wrong on the board" in said
    assert "secret" not in said
    assert "secret of the house" in caplog.text
    caplog.clear()


def post(url: str, **headers: str) -> httpx2.Response:
    return httpx2.post(f"{url}/mcp", json=PING, headers=HEADERS | headers, timeout=60, trust_env=False, verify=False)


@pytest.mark.parametrize("key", ["", "Bearer wrong"])
def test_without_a_good_key_it_is_401(one_api: Api, key: str) -> None:
    answer = post(one_api.url, Authorization=key)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "host", ["evil.example.org", "127.0.0.1.evil.example.org", "evil.example.org:80", "localhost@x"]
)
def test_other_hosts_are_refused_with_the_setting_that_allows_them(one_api: Api, host: str) -> None:
    answer = post(one_api.url, Host=host)
    assert (answer.status_code, answer.json()["code"]) == (421, "host_not_allowed")
    assert "BOARD_MCP_HOSTS" in answer.json()["message"]


@pytest.mark.usefixtures("sdk")
def test_the_public_host_loopback_and_named_hosts_are_answered(open_api: OpenApi) -> None:
    api = open_api(public_url="https://Board.example.org", mcp_hosts="board.internal:8443, other.internal")
    good = ["board.example.org", "BOARD.example.org:443", "board.internal:8443", "other.internal", "other.internal:9"]
    for host in [*good, "localhost:1", "[::1]:8000", "127.0.0.1"]:
        assert post(api.url, Host=host).status_code == 200, host
    for host in ("board.internal", "board.internal:1"):
        assert post(api.url, Host=host).status_code == 421, host
    for origin in ("https://evil.example.org", "null", "https://board.example.org.evil.org"):
        assert post(api.url, Origin=origin).status_code == 403, origin
    assert post(api.url, Origin="https://board.example.org").status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_it_takes_post_only(one_api: Api, method: str) -> None:
    answer = httpx2.request(method, f"{one_api.url}/mcp", headers=HEADERS, trust_env=False, verify=False)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST, OPTIONS")


def test_without_the_sdk_it_says_how_to_install_it(open_api: OpenApi, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def without(name: str, *more: Any, **others: Any) -> Any:
        if name.partition(".")[0] in ("mcp", "mcp_types"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return usual(name, *more, **others)

    monkeypatch.delitem(sys.modules, "board.tools.mcp_server", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    answer = post(open_api().url)
    assert (answer.status_code, answer.json()["code"]) == (501, "mcp_not_installed")
    assert "pip install 'ai-task-board[mcp]'" in answer.json()["message"]


def test_a_board_that_nobody_asks_for_mcp_does_not_load_it() -> None:
    # In a process of its own, as other tests here do load it.
    code = "import sys, board.app; sys.exit(any(name.partition('.')[0].startswith('mcp') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.usefixtures("sdk")
async def test_a_real_board_loads_the_sdk_when_it_is_asked_and_stops_cleanly(board_process: StartBoard) -> None:
    board = board_process("up", env={"BOARD_BOOTSTRAP_API_KEY": BOOTSTRAP})
    for mode in ("auto", "legacy"):
        async with connected(board.url, mode=mode) as client:
            assert (await use(client, "find_tasks"))["count"] == 0
    assert board.stop() == 0
    assert "mcp." not in board.log, "a line for every request would bury the rest"
