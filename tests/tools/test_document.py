"""The tool document, held against what Dify's importer does: nothing is lost, nothing breaks."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from board.tools.document import document
from board.tools.verbs import VERBS
from tests.tools.importer import ImportFails, import_document

DOCS = Path(__file__).parents[2] / "docs"
PUBLIC = "https://board.example.org"
DOCUMENT = document(PUBLIC)
IMPORTED = import_document(json.dumps(DOCUMENT))
TOOLS = {tool.name: tool for tool in IMPORTED.tools}


def test_every_verb_becomes_a_tool_and_no_other() -> None:
    assert list(TOOLS) == [
        "create_task",
        "get_task",
        "find_tasks",
        "add_note",
        "request_review",
        "get_decision",
        "report_result",
    ]
    assert IMPORTED.warnings == []
    assert IMPORTED.description


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_nothing_of_a_verb_is_lost(verb: Any) -> None:
    tool = TOOLS[verb.name]
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool.name)
    assert tool.description == verb.about
    assert len(tool.description) > 60
    assert (tool.method, tool.url) == ("post", f"{PUBLIC}/integrations/dify/{verb.name}")
    assert tool.content_type == "application/json"
    assert [it.name for it in tool.parameters] == [it.flat_name for it in verb.arguments]
    for parameter, argument in zip(tool.parameters, verb.arguments, strict=True):
        assert parameter.place == "body"
        assert parameter.type == "string", "null and empty text break Dify's numbers; objects and lists are garbled"
        assert parameter.required == argument.required
        assert parameter.default == (None if argument.required else "")
        assert parameter.description.startswith(argument.about)
        for choice in argument.choices:  # an enum would be dropped: the words must say it
            assert choice in parameter.description


def shapes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from shapes(item)
    elif isinstance(value, list):
        for item in value:
            yield from shapes(item)


def test_it_holds_nothing_that_the_importer_drops_or_stumbles_over() -> None:
    for path, item in DOCUMENT["paths"].items():
        assert "{" not in path, "a value in the address is put there raw"
        assert list(item) == ["post"]
        [operation] = item.values()
        assert "parameters" not in operation
        body = operation["requestBody"]["content"]
        assert list(body) == ["application/json"]
        schema = body["application/json"]["schema"]
        assert schema["properties"], "no tool without parameters"
        for shape in shapes(schema):
            assert not {"$ref", "anyOf", "oneOf", "allOf", "enum", "const", "items", "format", "examples"} & set(shape)
        assert {it["type"] for it in schema["properties"].values()} == {"string"}
    assert "components" not in DOCUMENT
    assert len(DOCUMENT["paths"]) <= 20


def broken(change: str) -> dict[str, Any]:
    changed = copy.deepcopy(DOCUMENT)
    operation = changed["paths"]["/integrations/dify/get_task"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    match change:
        case "no servers":
            del changed["servers"]
        case "null description":
            operation["description"] = None
        case "union type":
            schema["properties"]["task_id"]["type"] = ["string", "null"]
        case "boolean schema":
            schema["properties"]["task_id"] = True
    return changed


@pytest.mark.parametrize("change", ["no servers", "null description", "union type", "boolean schema"])
def test_the_importer_of_these_tests_breaks_where_that_of_dify_does(change: str) -> None:
    with pytest.raises(ImportFails):
        import_document(broken(change))


def test_the_importer_of_these_tests_loses_what_that_of_dify_loses() -> None:
    changed = copy.deepcopy(DOCUMENT)
    schema = changed["paths"]["/integrations/dify/get_task"]["post"]["requestBody"]["content"]["application/json"]
    schema["schema"] = {"anyOf": [schema["schema"]]}
    tools = {tool.name: tool for tool in import_document(changed).tools}
    assert tools["get_task"].parameters == []


def test_the_page_names_every_tool_with_the_scopes_of_the_reference() -> None:
    def rows(page: str, prefix: str) -> dict[str, str]:
        text = (DOCS / page).read_text("utf-8")
        return dict(re.findall(rf"^\| `{prefix}(\w+)` \| ([^|]+) \|", text, re.MULTILINE))

    page = rows("dify-tools.md", "")
    assert list(page) == list(TOOLS)
    assert page == rows("api.md", "POST /integrations/dify/")
