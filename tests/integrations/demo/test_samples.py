"""The demo's data: it is loaded by the entry point, it is valid, and its tasks and the stand-in fit each other."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import entry_points
from typing import Any

import httpx
import pytest
import yaml
from jsonschema import Draft202012Validator
from starlette.applications import Starlette
from starlette.routing import Mount

from board import templating
from board.catalogue.apply import parse
from board.catalogue.connection_spec import ConnectionSpec
from board.catalogue.spec import TypeSpec
from board.ports import Demo
from integrations.demo import demo, samples
from integrations.demo.apps import APPS
from integrations.demo.faults import Faults
from integrations.demo.hook import SECRET
from tests.integrations.demo.conftest import serving

BASE = "http://127.0.0.1:8000/demo"


def catalogue() -> tuple[dict[str, TypeSpec], dict[str, ConnectionSpec]]:
    parts = [parse(text.replace("{{ base }}", BASE), {}) for text in samples.catalogue()]
    types = [TypeSpec.model_validate(raw) for part in parts for raw in part.get("types", [])]
    connections = [ConnectionSpec.model_validate(raw) for part in parts for raw in part.get("connections", [])]
    return {spec.name: spec for spec in types}, {spec.name: spec for spec in connections}


TYPES, CONNECTIONS = catalogue()
TASKS = samples.tasks()


def _context(task: dict[str, Any]) -> dict[str, Any]:
    return {"payload": task["payload"], "source": task["source"], "review": {"instruction": "", "former_output": None}}


def _title(task: dict[str, Any]) -> str:
    return str(task["title"])


def test_the_entry_point_gives_a_demo() -> None:
    (entry,) = entry_points(group="board.demo", name="dify") or (None,)
    loaded = (entry.load() if entry else demo)()
    assert isinstance(loaded, Demo)
    assert loaded.mount == "/demo"
    assert len(loaded.tasks) >= 14
    assert loaded.catalogue == samples.catalogue()


def test_the_three_types() -> None:
    assert {name: (spec.priority, spec.review.when) for name, spec in TYPES.items()} == {
        "lead.qualify": ("P1", "rules"),
        "complaint.answer": ("P0", "always"),
        "article.check": ("P2", "rules"),
    }
    assert {name: spec.action is not None for name, spec in TYPES.items()} == {
        "lead.qualify": True,
        "complaint.answer": True,
        "article.check": False,
    }


@pytest.mark.parametrize("spec", TYPES.values(), ids=TYPES)
def test_a_type_says_that_no_ai_is_at_work(spec: TypeSpec) -> None:
    assert "Demo stand-in" in spec.shown_title("en")
    assert "演示" in spec.shown_title("zh_CN")


@pytest.mark.parametrize("spec", TYPES.values(), ids=TYPES)
def test_a_type_names_connections_that_exist(spec: TypeSpec) -> None:
    assert spec.handler.connection is not None
    assert CONNECTIONS[spec.handler.connection].kind == "dify"
    assert CONNECTIONS[spec.handler.connection].key in APPS
    if spec.action:
        assert spec.action.connection is not None
        assert CONNECTIONS[spec.action.connection].kind == "webhook"
        assert CONNECTIONS[spec.action.connection].secret == SECRET


def test_connections_stand_before_the_types_that_name_them() -> None:
    first = yaml.safe_load(samples.catalogue()[0])
    assert first.keys() == {"connections"}
    assert all("{{ base }}" in connection["url"] for connection in first["connections"])


@pytest.mark.parametrize("task", TASKS, ids=_title)
def test_a_task_fits_its_type(task: dict[str, Any]) -> None:
    spec = TYPES[task["type"]]
    assert spec.payload_schema is not None
    Draft202012Validator(spec.payload_schema).validate(task["payload"])
    assert spec.task_id is not None
    assert templating.fill_strict(spec.task_id, _context(task))
    assert task.keys() <= {"type", "title", "source", "payload", "max_retries", "run_after"}


def test_every_task_has_an_id_of_its_own() -> None:
    ids = [templating.fill_strict(str(TYPES[task["type"]].task_id), _context(task)) for task in TASKS]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("task", TASKS, ids=_title)
def test_the_stand_ins_answer_fits_the_output_schema(task: dict[str, Any]) -> None:
    spec = TYPES[task["type"]]
    app = APPS[str(CONNECTIONS[str(spec.handler.connection)].key)]
    inputs = templating.fill(spec.handler.inputs, _context(task))
    declared = {variable.name for variable in app.variables}
    assert inputs.keys() <= declared, "Dify would drop the rest without a word"
    outputs = app.judge(app.accept(inputs))
    assert spec.handler.output_schema is not None
    Draft202012Validator(spec.handler.output_schema).validate(outputs)
    for path in spec.handler.judgement.model_dump(exclude_none=True).values():
        assert path in outputs
    Faults().asked_for(inputs)  # raises when demo_fault names a fault that does not exist


def test_a_fresh_demo_shows_every_kind_of_ending() -> None:
    faults = {task["payload"].get("demo_fault", "none").split()[0] for task in TASKS}
    assert faults >= {"none", "rate_limit", "invalid_param", "html_504", "slow", "partial", "refusal"}
    texts = "".join(str(task["payload"]) for task in TASKS)
    assert any("\u4e00" <= letter <= "\u9fff" for letter in texts)


def test_run_after_is_counted_from_now() -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    dated = [task["run_after"] for task in samples.tasks(now) if "run_after" in task]
    assert dated == ["2026-12-01T08:00:00+00:00"]


async def test_it_works_mounted_under_a_path() -> None:
    loaded = demo()
    async with serving(Starlette(routes=[Mount(loaded.mount, app=loaded.app)])) as address:
        (connection,) = [spec for spec in CONNECTIONS.values() if spec.name == "demo-complaints"]
        url = connection.url.replace(BASE, f"{address}{loaded.mount}")
        headers = {"Authorization": f"Bearer {connection.key}"}
        async with httpx.AsyncClient(headers=headers, trust_env=False) as http:
            body = {"inputs": {"text": "My parcel is late."}, "user": "u"}
            answer = await http.post(f"{url}/workflows/run", json=body)
            hook = await http.post(f"{address}{loaded.mount}/hook/publish", json={})
        assert answer.json()["data"]["outputs"]["label"] == "delivery"
        assert hook.json()["received"] is True
