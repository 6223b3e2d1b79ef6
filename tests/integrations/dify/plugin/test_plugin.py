"""The plugin: its files fit each other and the board's verbs, its calls a board, and its package is whole."""

from __future__ import annotations

import ast
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from board.tools.arguments import Argument, Kind
from board.tools.verbs import VERBS
from integrations.dify.plugin.pack import files, pack
from tests.api.conftest import Api
from tests.integrations.dify.plugin.conftest import FOLDER, CredentialError, Runtime, Tool
from tests.rig.receiver import Receiver, Reply

NAMES = [verb.name for verb in VERBS]
TYPES = {
    Kind.TEXT: "string",
    Kind.CHOICE: "select",
    Kind.LIST: "array",
    Kind.NUMBER: "number",
    Kind.OBJECT: "object",
    Kind.VALUE: "object",
}
Module = Callable[[str], Any]


def read(path: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / path).read_text("utf-8"))
    return found


MANIFEST, PROVIDER = read("manifest.yaml"), read("provider/task_board.yaml")


def test_the_manifest_has_what_dify_requires() -> None:
    needed = {"version", "type", "author", "name", "label", "description", "icon", "created_at", "resource", "plugins"}
    assert needed | {"meta"} == set(MANIFEST)
    assert MANIFEST["type"] == "plugin"
    assert MANIFEST["plugins"] == {"tools": ["provider/task_board.yaml"]}
    assert MANIFEST["meta"]["runner"] == {"language": "python", "version": "3.12", "entrypoint": "main"}
    assert MANIFEST["meta"]["arch"] == ["amd64", "arm64"]
    assert set(MANIFEST["resource"]["permission"]) == {"tool"}, "it asks for no right that it does not use"
    project = tomllib.loads((FOLDER.parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    assert MANIFEST["version"] == project["version"]
    for shown in (MANIFEST, PROVIDER["identity"]):
        assert set(shown["label"]) == set(shown["description"]) == {"en_US", "zh_Hans"}
        assert (FOLDER / "_assets" / shown["icon"]).read_text("utf-8").startswith("<svg ")


def test_the_provider_names_every_tool_and_asks_for_address_and_key() -> None:
    assert PROVIDER["tools"] == [f"tools/{name}.yaml" for name in NAMES]
    credentials = PROVIDER["credentials_for_provider"]
    assert {name: it["type"] for name, it in credentials.items()} == {
        "board_url": "text-input",
        "api_key": "secret-input",
    }
    assert all(it["required"] for it in credentials.values())
    assert (FOLDER / PROVIDER["extra"]["python"]["source"]).is_file()


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_tool_is_its_verb_with_selects_and_objects(verb: Any) -> None:
    tool = read(f"tools/{verb.name}.yaml")
    assert tool["identity"]["name"] == verb.name
    assert tool["identity"]["label"]["en_US"] == verb.title
    assert tool["description"]["llm"] == verb.about
    assert [it["name"] for it in tool["parameters"]] == [it.name for it in verb.arguments]
    for parameter, argument in zip(tool["parameters"], verb.arguments, strict=True):
        check_parameter(parameter, argument)
    assert tool["extra"]["python"]["source"] == f"tools/{verb.name}.py"
    tree = ast.parse((FOLDER / f"tools/{verb.name}.py").read_text("utf-8"))
    classes = [item for item in tree.body if isinstance(item, ast.ClassDef)]
    assert len(classes) == 1, "Dify takes the only class of a module"


def check_parameter(parameter: dict[str, Any], argument: Argument) -> None:
    assert parameter["type"] == TYPES[argument.kind]
    assert parameter["required"] == argument.required
    assert parameter["form"] == "llm"
    assert parameter["label"]["zh_Hans"]
    assert parameter["human_description"]["en_US"] == argument.about
    assert parameter["llm_description"] == argument.schema["description"]
    options = [it["value"] for it in parameter.get("options", [])]
    assert options == (list(argument.choices) if argument.kind is Kind.CHOICE else [])
    if argument.kind in (Kind.LIST, Kind.OBJECT, Kind.VALUE):
        assert parameter["input_schema"] == {"type": TYPES[argument.kind], **argument.schema}


# -- its calls --------------------------------------------------------------------------------------------------------


def use(module: Module, api: Api, name: str, key: str | None = None, **parameters: Any) -> dict[str, Any]:
    client = module("board_client")
    tool = Tool(Runtime({"board_url": f" {api.url}/ ", "api_key": key or api.key}))
    (kind, body), (text_kind, text) = client.answer(tool, name, parameters)
    assert (kind, text_kind, text) == ("json", "text", body["message"])
    return dict(body)


def test_the_tools_work_with_a_board(plugin_module: Module, one_api: Api) -> None:
    filed = use(
        plugin_module,
        one_api,
        "create_task",
        type="trial",
        payload={"text": "线索", "n": None},
        task_id="P-1",
        title="",
        priority="P0",
        tags=["a", "b, c"],
        note=None,
    )
    assert filed["created"] is True
    task = one_api.task("P-1")
    assert (task["payload"], task["tags"], task["priority"]) == ({"text": "线索", "n": None}, ["a", "b, c"], "P0")
    found = use(plugin_module, one_api, "find_tasks", status=["pending"], query="P-1", limit=5)
    assert found["count"] == 1
    assert use(plugin_module, one_api, "get_task", task_id="P-1", wait_seconds=0.1)["status"] == "pending"
    assert use(plugin_module, one_api, "add_note", task_id="P-1", note="seen")["status"] == "pending"
    assert use(plugin_module, one_api, "request_review", question="May I?", details={"n": 1})["created"] is True
    assert use(plugin_module, one_api, "get_decision", task_id="P-1")["decided"] is False


@pytest.mark.parametrize("name", NAMES)
def test_every_tool_module_passes_its_call_on(plugin_module: Module, one_api: Api, name: str) -> None:
    module = plugin_module(f"tools.{name}")
    [cls] = [it for it in vars(module).values() if isinstance(it, type) and it.__module__ == module.__name__]
    calls: list[tuple[Any, ...]] = []
    module.board_client = type("Client", (), {"answer": staticmethod(lambda *given: calls.append(given) or iter(()))})
    tool = object.__new__(cls)
    assert list(tool._invoke({"task_id": "A"})) == []
    assert calls == [(tool, name, {"task_id": "A"})]


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("get_task", {"task_id": "none"}, "There is no task “none”."),
        ("create_task", {"type": "other"}, "Its types are"),
        ("report_result", {"task_id": "none", "result": {}}, "There is no task “none”."),
    ],
)
def test_a_refusal_fails_with_the_boards_own_sentence(
    plugin_module: Module, one_api: Api, name: str, parameters: dict[str, Any], says: str
) -> None:
    with pytest.raises(plugin_module("board_client").BoardError, match=says):
        use(plugin_module, one_api, name, **parameters)


def validate(module: Module, url: str, key: str) -> None:
    provider = module("provider.task_board").TaskBoardProvider()
    provider._validate_credentials({"board_url": url, "api_key": key})


def test_good_credentials_are_taken(plugin_module: Module, one_api: Api) -> None:
    validate(plugin_module, one_api.url, one_api.key)
    validate(plugin_module, f"{one_api.url}/", one_api.as_key("submit", name="plugin-good").key)


@pytest.mark.parametrize(
    ("url", "key", "says"),
    [
        ("", "k", "full one"),
        ("board.example.org", "k", "full one"),
        ("file:///etc/passwd", "k", "full one"),
        (None, "", "is missing"),
        (None, "a\nb", "holds characters"),
        (None, "wrong-key", "unknown or revoked"),
        ("http://127.0.0.1:9", "k", "could not be reached"),
    ],
)
def test_bad_credentials_are_refused_in_words(
    plugin_module: Module, one_api: Api, url: str | None, key: str, says: str
) -> None:
    error = plugin_module("provider.task_board").ToolProviderCredentialValidationError
    assert error is CredentialError
    with pytest.raises(error, match=says):
        validate(plugin_module, one_api.url if url is None else url, key)


def test_what_is_no_board_is_said_to_be_none(plugin_module: Module, one_api: Api) -> None:
    with pytest.raises(plugin_module("board_client").BoardError, match="something else"):
        plugin_module("board_client")._request({"board_url": one_api.url, "api_key": "k"}, "GET", "/login")


def test_the_key_is_not_carried_to_where_a_redirect_leads(
    plugin_module: Module, one_api: Api, receiver: Receiver
) -> None:
    receiver.reply(Reply(302, headers={"Location": f"{one_api.url}/api/v1/me"}))
    error = plugin_module("provider.task_board").ToolProviderCredentialValidationError
    with pytest.raises(error, match="leads on to"):
        validate(plugin_module, receiver.url, one_api.key)


# -- the package ------------------------------------------------------------------------------------------------------


def test_the_package_is_a_zip_of_all_that_is_named_and_nothing_else(tmp_path: Path) -> None:
    pack(tmp_path / "a.difypkg")
    pack(tmp_path / "b.difypkg")
    assert (tmp_path / "a.difypkg").read_bytes() == (tmp_path / "b.difypkg").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.difypkg") as package:
        assert package.testzip() is None
        names = set(package.namelist())
    tools = {f"tools/{name}.{kind}" for name in NAMES for kind in ("yaml", "py")}
    assert names == tools | {
        "manifest.yaml",
        "main.py",
        "board_client.py",
        "requirements.txt",
        "README.md",
        "PRIVACY.md",
        "_assets/icon.svg",
        "provider/task_board.yaml",
        "provider/task_board.py",
    }
    here = {path for path in FOLDER.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert here - set(files()) == {FOLDER / "pack.py"}, "a file that is neither packed nor the packer"
