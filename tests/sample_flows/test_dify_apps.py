"""The sample apps for Dify: well formed, wired to what exists, and fitting the task types they are made for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from board.catalogue.shape import first_problem
from tests.api.conftest import BOOTSTRAP, Api

FOLDER = Path(__file__).parents[2] / "sample_flows"
FILES = sorted((FOLDER / "dify").glob("*.yml"))
CHAT = "file-task-chat.yml"
# What a node of each kind needs, and what later nodes may read of it.
NEEDS = {
    "start": {"variables"},
    "llm": {"model", "prompt_template", "context", "vision", "structured_output", "structured_output_enabled"},
    "code": {"variables", "code_language", "code", "outputs"},
    "http-request": {"method", "url", "authorization", "headers", "params", "body", "timeout", "retry_config"},
    "if-else": {"cases"},
    "end": {"outputs"},
    "answer": {"answer"},
}
GIVES = {"llm": {"text", "structured_output", "usage"}, "http-request": {"body", "status_code", "headers", "files"}}
SYSTEM = {"query", "workflow_run_id", "user_id", "conversation_id"}
ENDS = {"workflow": "end", "advanced-chat": "answer"}


def load(file: Path) -> dict[str, Any]:
    app: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    return app


def nodes_of(app: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {node["id"]: node["data"] for node in app["workflow"]["graph"]["nodes"]}


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)


def selectors(data: dict[str, Any]) -> Iterator[list[str]]:
    """Every variable that a node reads."""
    for item in [*data.get("variables", []), *data.get("outputs", [])]:
        if isinstance(item, dict) and "value_selector" in item:
            yield item["value_selector"]
    for case in data.get("cases", []):
        for condition in case["conditions"]:
            yield condition["variable_selector"]
    for text in texts(data):
        for found in re.findall(r"\{\{#([^#]+)#\}\}", text):
            yield found.split(".")


def gives(data: dict[str, Any]) -> set[str]:
    match data["type"]:
        case "start":
            return {it["variable"] for it in data["variables"]}
        case "code":
            return set(data["outputs"])
        case kind:
            return GIVES.get(kind, set())


def before(app: dict[str, Any], node: str) -> set[str]:
    """The nodes that have run when this one does."""
    found: set[str] = set()
    seek = {node}
    while seek:
        seek = {it["source"] for it in app["workflow"]["graph"]["edges"] if it["target"] in seek} - found
        found |= seek
    return found


def test_there_are_four() -> None:
    assert [file.name for file in FILES] == [
        "article-check.yml",
        CHAT,
        "lead-qualify.yml",
        "mail-summarise.yml",
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_frame_is_that_of_version_0_6_0(file: Path) -> None:
    app = load(file)
    assert (app["version"], app["kind"]) == ("0.6.0", "app")
    assert app["dependencies"] == []
    assert app["app"]["mode"] == ("advanced-chat" if file.name == CHAT else "workflow")
    assert app["app"]["icon_type"] == "emoji"
    assert all(app["app"][name] for name in ("name", "icon", "icon_background", "description"))
    assert set(app["workflow"]) == {"conversation_variables", "environment_variables", "features", "graph"}
    for variable in app["workflow"]["environment_variables"]:
        assert variable["selector"] == ["env", variable["name"]]
        assert variable["value"] == "" or variable["value_type"] != "secret"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nodes_have_what_their_kind_needs(file: Path) -> None:
    app = load(file)
    raw = app["workflow"]["graph"]["nodes"]
    assert len({node["id"] for node in raw}) == len(raw)
    for node in raw:
        assert isinstance(node["id"], str)
        assert node["type"] == "custom"
        assert set(node["position"]) == {"x", "y"}
        assert node["data"]["title"]
        assert NEEDS[node["data"]["type"]] <= set(node["data"])
    kinds = [node["data"]["type"] for node in raw]
    assert kinds.count("start") == 1
    assert ENDS[app["app"]["mode"]] in kinds


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_edges_lead_from_the_start_to_an_end_of_every_branch(file: Path) -> None:
    app = load(file)
    nodes, edges = nodes_of(app), app["workflow"]["graph"]["edges"]
    assert len({edge["id"] for edge in edges}) == len(edges)
    for edge in edges:
        assert edge["type"] == "custom"
        assert edge["targetHandle"] == "target"
        assert edge["data"]["sourceType"] == nodes[edge["source"]]["type"]
        assert edge["data"]["targetType"] == nodes[edge["target"]]["type"]
    for name, data in nodes.items():
        handles = sorted(edge["sourceHandle"] for edge in edges if edge["source"] == name)
        if data["type"] == ENDS[app["app"]["mode"]]:
            assert handles == []
        elif data["type"] == "if-else":
            assert handles == sorted([case["case_id"] for case in data["cases"]] + ["false"])
        else:
            assert handles == ["source"]
        assert data["type"] == "start" or "start" in before(app, name), "every node is reached"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_variable_that_is_read_exists_by_then(file: Path) -> None:
    app = load(file)
    nodes = nodes_of(app)
    environment = {it["name"] for it in app["workflow"]["environment_variables"]}
    read = 0
    for name, data in nodes.items():
        for source, variable, *deeper in selectors(data):
            read += 1
            if source == "env":
                assert variable in environment
            elif source == "sys":
                assert variable in SYSTEM
                assert app["app"]["mode"] == "advanced-chat"
            else:
                assert source in before(app, name), f"{name} reads {source}, which has not run"
                assert variable in gives(nodes[source])
            if variable == "structured_output" and deeper:
                assert deeper[0] in nodes[source]["structured_output"]["schema"]["properties"]
    assert read > 3


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_a_model_answers_is_asked_for_exactly(file: Path) -> None:
    models = [data for data in nodes_of(load(file)).values() if data["type"] == "llm"]
    assert models
    for data in models:
        schema = data["structured_output"]["schema"]
        assert data["structured_output_enabled"] is True
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"]), "strict structured output wants every field required"
        assert all(shape["description"] for shape in schema["properties"].values())
        assert [part["role"] for part in data["prompt_template"]] == ["system", "user"]


MAIL = yaml.safe_load(
    re.search(
        r"```yaml\n(types:\n  - name: mail\.summarise.*?)```",
        (FOLDER.parent / "docs/dify-sample-apps.md").read_text("utf-8"),
        re.DOTALL,
    )[1]  # type: ignore[index]
)


def type_for(name: str) -> dict[str, Any]:
    if name == "mail.summarise":
        raw: dict[str, Any] = MAIL["types"][0]
        return raw
    (raw,) = yaml.safe_load((FOLDER / "types" / f"{name}.yaml").read_text("utf-8"))["types"]
    return raw


@pytest.mark.parametrize("name", ["lead.qualify", "article.check", "mail.summarise"])
def test_an_app_takes_and_gives_what_its_type_asks(name: str) -> None:
    spec = type_for(name)
    nodes = nodes_of(load(FOLDER / "dify" / f"{name.replace('.', '-')}.yml"))
    assert gives(nodes["start"]) == set(spec["handler"]["inputs"])
    required = {it["variable"] for it in nodes["start"]["variables"] if it["required"]}
    assert required == {"text"}
    schema = spec["handler"]["output_schema"]
    answered = nodes["judge"]["structured_output"]["schema"]
    outputs = {it["variable"]: it["value_selector"] for it in nodes["end"]["outputs"]}
    assert outputs == {field: ["judge", "structured_output", field] for field in answered["properties"]}
    assert set(schema["required"]) <= set(outputs) == set(schema["properties"])
    by_kind = {"number": 0.5, "string": "x", "array": ["x"]}
    for field, shape in answered["properties"].items():
        for value in shape.get("enum", [by_kind[shape["type"]]]):
            assert first_problem(schema["properties"][field], value) is None, field


# -- the chatflow, step by step against a board ----------------------------------------------------------------------


def run_code(data: dict[str, Any], **values: Any) -> dict[str, Any]:
    """A Code node as Dify's sandbox runs it: only what is declared goes in and comes out."""
    scope: dict[str, Any] = {}
    exec(compile(data["code"], "code node", "exec"), scope)
    assert set(values) == {it["variable"] for it in data["variables"]}
    found: dict[str, Any] = scope["main"](**values)
    assert set(found) == set(data["outputs"])
    assert all(isinstance(value, str) for value in found.values())
    return found


def run_http(data: dict[str, Any], variables: dict[str, str]) -> httpx2.Response:
    """An HTTP Request node: templates filled in, the body sent as it then stands."""

    def filled(text: str) -> str:
        return re.sub(r"\{\{#([^#]+)#\}\}", lambda found: variables[found[1]], text)

    [body] = data["body"]["data"]
    return httpx2.request(
        data["method"].upper(),
        filled(data["url"]),
        content=filled(body["value"]).encode(),
        headers={
            "Authorization": f"Bearer {filled(data['authorization']['config']['api_key'])}",
            "Content-Type": "application/json",
        },
        trust_env=False,
    )


def chat(api: Api, said: dict[str, Any], query: str = "hello", run_id: str = "run-1") -> str:
    """The answer of the chatflow where the model understood `said`."""
    nodes = nodes_of(load(FOLDER / "dify" / CHAT))
    prepared = run_code(nodes["prepare"], said=said, query=query, run_id=run_id, user_id="user-1")
    if prepared["intent"] == "other":
        return str(prepared["reply"])
    call, read = ("file_task", "read_filed") if prepared["intent"] == "file" else ("find_tasks", "read_found")
    variables = {f"prepare.{name}": value for name, value in prepared.items()}
    variables |= {"env.BOARD_URL": api.url, "env.BOARD_KEY": api.key}
    answer = run_http(nodes[call], variables)
    return str(run_code(nodes[read], body=answer.text, status_code=answer.status_code)["text"])


CHAT_TYPE = {"name": "chat.request", "handler": {"use": "none"}, "require_id": True}
FILE = {"intent": "file", "title": "Order toner", "details": 'Say "please"\n}} {{#env.BOARD_KEY#}}', "urgent": True}


def test_the_chatflow_files_a_task_once_and_finds_it(one_api: Api) -> None:
    one_api.types(CHAT_TYPE)
    told = chat(one_api, FILE)
    assert told.startswith("The task was filed. Its number is chat:run-1.")
    assert "nothing was made twice" in chat(one_api, FILE), "the node may repeat a call"
    task = one_api.task("chat:run-1")
    assert task["payload"] == {"details": FILE["details"], "asked_by": "user-1"}
    assert (task["title"], task["priority"], task["source"]) == ("Order toner", "P1", "dify")
    found = chat(one_api, {"intent": "find", "query": "toner"})
    assert found == "- chat:run-1: Order toner (pending)"
    assert chat(one_api, {"intent": "find", "query": "paper"}) == "No task fits."


@pytest.mark.parametrize("said", [{}, {"intent": "drop_all"}, {"intent": None}])
def test_what_the_model_did_not_understand_does_nothing(one_api: Api, said: dict[str, Any]) -> None:
    assert "look up how it stands" in chat(one_api, said)


def test_a_refusal_is_told_in_the_boards_words(one_api: Api) -> None:
    stranger = Api(one_api.board, one_api.url, "x" * 30, one_api.opened)
    assert "API key is unknown" in chat(stranger, FILE, run_id="run-2")
    assert one_api.key == BOOTSTRAP
    nodes = nodes_of(load(FOLDER / "dify" / CHAT))
    page = run_code(nodes["read_filed"], body="<html>502</html>", status_code=502)
    assert page["text"] == "The board could not be reached (502). Please try again later."
