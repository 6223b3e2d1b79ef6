"""The sample types can be applied as they are, need exactly the variables the README names, and match the demo's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from board.catalogue.apply import parse
from board.catalogue.connection_spec import ConnectionSpec
from board.catalogue.spec import TypeSpec
from integrations.demo import samples

FOLDER = Path(__file__).parents[2] / "sample_flows"
FILES = sorted((FOLDER / "types").glob("*.yaml"))
VARIABLES = {
    "DIFY_URL": "https://dify.example.org/v1",
    "DIFY_LEADS_KEY": "app-1",
    "DIFY_COMPLAINTS_KEY": "app-2",
    "DIFY_ARTICLES_KEY": "app-3",
    "N8N_LEADS_URL": "https://n8n.example.org/webhook/leads",
    "N8N_COMPLAINTS_URL": "https://n8n.example.org/webhook/complaints",
    "N8N_SECRET": "a long random text",
}


def _name(file: Path) -> str:
    return file.stem


def test_there_are_three() -> None:
    assert [file.stem for file in FILES] == ["article.check", "complaint.answer", "lead.qualify"]


@pytest.mark.parametrize("file", FILES, ids=_name)
def test_a_file_is_valid_and_complete(file: Path) -> None:
    data = parse(file.read_text("utf-8"), VARIABLES)
    connections = {raw["name"]: ConnectionSpec.model_validate(raw) for raw in data["connections"]}
    (spec,) = [TypeSpec.model_validate(raw) for raw in data["types"]]
    assert spec.name == file.stem
    assert connections[str(spec.handler.connection)].kind == "dify"
    if spec.action:
        assert connections[str(spec.action.connection)].kind == "webhook"


@pytest.mark.parametrize("file", FILES, ids=_name)
def test_the_readme_names_a_files_variables(file: Path) -> None:
    needed = set(re.findall(r"\$\{(\w+)\}", file.read_text("utf-8")))
    rows = [line for line in (FOLDER / "README.md").read_text("utf-8").splitlines() if f"`types/{file.name}`" in line]
    assert len(rows) == 2, "one row in each language"
    for row in rows:
        assert {name for name in re.findall(r"`(\w+)`", row) if name.isupper()} == needed


@pytest.mark.parametrize("file", FILES, ids=_name)
def test_a_sample_equals_the_demos_type_but_for_its_own_parts(file: Path) -> None:
    def shared(types: list[dict[str, Any]]) -> dict[str, Any]:
        (spec,) = [raw for raw in types if raw["name"] == file.stem]
        spec.pop("title")
        spec["payload_schema"]["properties"].pop("demo_fault", None)
        spec["handler"]["inputs"].pop("standin_fault", None)
        for block in (spec["handler"], spec.get("action", {})):
            block.pop("connection", None)
        return spec

    demo = [raw for text in samples.catalogue() for raw in yaml.safe_load(text).get("types", [])]
    assert shared(yaml.safe_load(file.read_text("utf-8"))["types"]) == shared(demo)
