"""The sample apps as Dify's own engine reads them. Runs where `graphon` is installed (Python 3.12 or newer)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml

from tests.api.conftest import Api
from tests.sample_flows.test_dify_apps import CHAT, FILES, FOLDER, load, nodes_of

dsl = pytest.importorskip("graphon.dsl", reason="graphon is not installed: pip install graphon (Python 3.12 or newer)")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_engine_can_load_every_app(file: Any) -> None:
    plan = dsl.inspect(file.read_text("utf-8"))
    assert (plan.load_status, plan.load_reason) == (dsl.LoadStatus.LOADABLE, None)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_node_has_the_form_of_its_kind(file: Any) -> None:
    from graphon.nodes.base.node import Node

    plan = dsl.inspect(file.read_text("utf-8"))
    known = Node.get_node_type_classes_mapping()
    for node in plan.document.graph_config["nodes"]:
        known[node["data"]["type"]]["1"].validate_node_data(node["data"])


def test_the_call_of_the_chatflow_runs_in_the_engine_against_a_board(one_api: Api) -> None:
    """The node's address, key from the environment, and a body with quotation marks, as the engine sends them."""
    one_api.types({"name": "chat.request", "handler": {"use": "none"}, "require_id": True})
    details = "Say \"please\"\nand {{#env.BOARD_KEY#}} {'a': 1}"
    body = {"type": "chat.request", "task_id": "chat:g", "payload_json": json.dumps({"details": details})}
    app = copy.deepcopy(load(FOLDER / "dify" / CHAT))
    call = nodes_of(app)["file_task"]
    call["body"]["data"][0]["value"] = "{{#start.create_body#}}"
    start = {"type": "start", "title": "Start", "variables": [
        {"variable": "create_body", "label": "Body", "type": "paragraph", "required": True}
    ]}  # fmt: skip
    end = {"type": "end", "title": "End", "outputs": [
        {"variable": name, "value_selector": ["file_task", name], "value_type": kind}
        for name, kind in (("body", "string"), ("status_code", "number"))
    ]}  # fmt: skip
    app["app"]["mode"] = "workflow"
    app["workflow"]["environment_variables"][0]["value"] = one_api.url
    app["workflow"]["environment_variables"][1]["value"] = one_api.key
    app["workflow"]["graph"] = {
        "nodes": [{"id": name, "data": data} for name, data in (("start", start), ("file_task", call), ("end", end))],
        "edges": [{"source": "start", "target": "file_task"}, {"source": "file_task", "target": "end"}],
    }
    engine = dsl.loads(yaml.safe_dump(app), start_inputs={"create_body": json.dumps(body)})
    outputs = [event.outputs for event in engine.run() if type(event).__name__ == "GraphRunSucceededEvent"][-1]
    assert outputs["status_code"] == 201
    assert json.loads(outputs["body"])["task_id"] == "chat:g"
    assert one_api.task("chat:g")["payload"] == {"details": details}
