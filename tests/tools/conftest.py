"""A served board, as for the tests of the API, and an agent that calls its tools as Dify would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.api.conftest import Api, api, at, one_api, open_api
from tests.tools.importer import Tool, import_document

__all__ = ["api", "at", "one_api", "open_api"]

DIRECT = {"name": "question", "handler": {"use": "none"}, "require_id": False, "review": {"grace": "0s"}}
OUTSIDE = {"name": "call", "handler": {"use": "outside"}, "require_id": False}


@dataclass
class Agent:
    """`agent("create_task", type="trial")`: what Dify's tool node sends for these arguments, and the answer."""

    api: Api
    tools: dict[str, Tool]
    key: str

    def __call__(self, tool: str, **arguments: Any) -> httpx2.Response:
        known = self.tools[tool]
        return self.post(tool, json=known.sent(arguments))

    def post(self, tool: str, **more: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.key}"} | more.pop("headers", {})
        answer = httpx2.post(self.tools[tool].url, headers=headers, timeout=60, trust_env=False, verify=False, **more)
        body = answer.json()
        assert isinstance(body, dict), "never a list, never empty"
        assert body["message"], "every answer says what to do"
        assert answer.status_code in (200, 201, 400, 404, 409, 410, 413, 422), answer.text
        return answer

    def body(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = self(tool, **arguments)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def with_key(self, *scopes: str, name: str = "other") -> Agent:
        return Agent(self.api, self.tools, self.api.as_key(*scopes, name=name).key)


def agent_of(api: Api, key: str | None = None) -> Agent:
    document = httpx2.get(f"{api.url}/integrations/dify/openapi.json", trust_env=False, verify=False).json()
    document["servers"] = [{"url": api.url}]  # this board does not know under which port it is served
    imported = import_document(document)
    return Agent(api, {tool.name: tool for tool in imported.tools}, key or api.key)


@pytest.fixture
def agent(api: Api) -> Agent:
    """An agent with all rights on a board without a consumer, with a type for questions and one for outside work."""
    api.types(DIRECT, OUTSIDE)
    return agent_of(api)
