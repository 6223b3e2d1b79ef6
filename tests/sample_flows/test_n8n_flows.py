"""The sample flows for n8n: whole, explained in both languages, without secrets, on node versions that old n8n know.

That they do what they say is proven in a real n8n: tests/n8n.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from board.catalogue.apply import parse
from board.catalogue.connection_spec import ConnectionSpec
from board.catalogue.spec import TypeSpec

FOLDER = Path(__file__).parents[2] / "sample_flows" / "n8n"
FILES = sorted(FOLDER.glob("*.json"))
NAMES = [
    "chat-message",
    "dead-letter-digest",
    "error-workflow",
    "intake",
    "invoice-once",
    "mail-thread",
    "p0-escalation",
    "publish-after-approval",
    "queue-depth-alert",
    "scheduled-sync",
    "sheet-import",
    "wait-for-decision",
    "work-outside",
]
# The newest version of each node that a flow may use: higher ones are unknown to n8n of a year ago.
VERSIONS = {
    "code": 2,
    "convertToFile": 1.1,
    "crypto": 2,
    "emailReadImap": 2,
    "errorTrigger": 1,
    "extractFromFile": 1,
    "filter": 2.2,
    "httpRequest": 4.2,
    "if": 2.2,
    "noOp": 1,
    "respondToWebhook": 1.1,
    "scheduleTrigger": 1.2,
    "set": 3.4,
    "splitInBatches": 3,
    "splitOut": 1,
    "stickyNote": 1,
    "switch": 3.2,
    "wait": 1.1,
    "webhook": 2,
}
CREDENTIALS = {"Board API key", "Board webhook secret", "Mailbox"}
# What n8n repeats as a whole node, with all of its items; the board answers a repeat of these the same.
SAFE_TO_REPEAT = re.compile(r"/(tasks|files|operations|heartbeat|complete|fail|release|confirm|reject|unknown|bulk)$")


def load(file: Path) -> dict[str, Any]:
    flow: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return flow


def kind(node: dict[str, Any]) -> str:
    return str(node["type"]).removeprefix("n8n-nodes-base.")


def section(heading: str) -> str:
    """What the page says below a heading."""
    text = (FOLDER / "README.md").read_text("utf-8")
    found = re.search(rf"^### `{re.escape(heading)}`.*?\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"no section for {heading}"
    return found[1]


def test_these_are_there() -> None:
    assert [file.stem for file in FILES] == NAMES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_frame_is_what_every_way_of_import_takes(file: Path) -> None:
    flow = load(file)
    assert set(flow) == {"id", "name", "nodes", "connections", "settings", "active"}
    assert re.fullmatch(r"[A-Za-z0-9]{8,36}", flow["id"])
    assert flow["active"] is False
    names = [node["name"] for node in flow["nodes"]]
    assert len(set(names)) == len(names)
    assert len({node["id"] for node in flow["nodes"]}) == len(names)
    for node in flow["nodes"]:
        assert node["typeVersion"] <= VERSIONS[kind(node)], node["name"]
        assert len(node["position"]) == 2
        assert ("webhookId" in node) == (kind(node) in ("webhook", "wait"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_node_is_reached_and_every_name_leads_somewhere(file: Path) -> None:
    flow = load(file)
    names = {node["name"] for node in flow["nodes"]}
    targets = {
        link["node"] for outputs in flow["connections"].values() for output in outputs["main"] for link in output
    }
    triggers = {it["name"] for it in flow["nodes"] if kind(it) in ("webhook", "scheduleTrigger", "errorTrigger")}
    aside = {it["name"] for it in flow["nodes"] if kind(it) in ("stickyNote", "emailReadImap")}
    assert set(flow["connections"]) <= names
    assert targets == names - triggers - aside
    assert set(re.findall(r"\$\('([^']+)'\)", json.dumps(flow, ensure_ascii=False))) <= names


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_expressions_end_where_they_seem_to(file: Path) -> None:
    """`}}` inside an expression ends it for n8n, so nested objects are written `} }`."""
    for text in re.findall(r'"(=(?:[^"\\]|\\.)*)"', file.read_text("utf-8")):
        for inner in re.findall(r"\{\{(.*?)\}\}", text):
            assert inner.count("{") == inner.count("}"), text


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_address_of_the_board_stands_in_one_place_and_no_secret_anywhere(file: Path) -> None:
    flow = load(file)
    [settings] = [node for node in flow["nodes"] if node["name"] == "Settings"]
    values = {it["name"]: it["value"] for it in settings["parameters"]["assignments"]["assignments"]}
    assert values["board"] == "http://localhost:8000"
    assert file.read_text("utf-8").count("localhost") == 1
    for node in flow["nodes"]:
        for reference in node.get("credentials", {}).values():
            assert reference["id"] == ""
            assert reference["name"] in CREDENTIALS


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_note_explains_it_in_both_languages_and_the_page_has_its_section(file: Path) -> None:
    flow = load(file)
    [note] = [node for node in flow["nodes"] if kind(node) == "stickyNote"]
    headings = re.findall(r"^## (.+)$", note["parameters"]["content"], re.MULTILINE)
    assert [bool(re.search(r"[一-鿿]", heading)) for heading in headings] == [False, True]
    assert "**Before use:**" in note["parameters"]["content"]
    assert "**使用前：**" in note["parameters"]["content"]
    page = section(file.name)
    assert re.search(r"[一-鿿]", page)
    settings = next(node for node in flow["nodes"] if node["name"] == "Settings")
    for field in settings["parameters"]["assignments"]["assignments"]:
        if field["name"] != "board":
            assert f"`{field['name']}`" in page, field["name"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_only_what_may_come_twice_is_sent_again_by_the_node(file: Path) -> None:
    for node in load(file)["nodes"]:
        if kind(node) != "httpRequest" or not node.get("retryOnFail"):
            continue
        assert (
            node["parameters"]["method"] == "GET"
            or node["name"] in ("Tell", "Comment")
            or SAFE_TO_REPEAT.search(node["parameters"]["url"])
        ), node["name"]


def test_the_types_of_the_flows_are_valid_and_complete() -> None:
    variables = {"N8N_PUBLISH_URL": "https://n8n.example.org/webhook/board-publish", "N8N_SECRET": "a long random text"}
    data = parse((FOLDER / "types.yaml").read_text("utf-8"), variables)
    connections = [ConnectionSpec.model_validate(raw).name for raw in data["connections"]]
    types = {spec.name for spec in (TypeSpec.model_validate(raw) for raw in data["types"])}
    assert connections == ["n8n-publish"]
    used = set()
    for file in FILES:
        used |= set(re.findall(r"type: '([a-z0-9.]+)'", file.read_text("utf-8")))
    assert used <= types
    assert types - used == {"post.publish", "invoice.read"}  # handed in by others, worked on or answered by a flow
