"""A served board, and the plugin's modules as Dify's daemon imports them."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import one_api

__all__ = ["one_api"]

FOLDER = Path(__file__).parents[4] / "integrations/dify/plugin"


@dataclass
class Runtime:
    credentials: dict[str, Any]


@dataclass
class Tool:
    """As much of the SDK's class as a tool uses. The SDK needs Python 3.12, and patches sockets and threads."""

    runtime: Runtime
    said: list[Any] = field(default_factory=list)

    def create_json_message(self, json: Any) -> tuple[str, Any]:
        return "json", json

    def create_text_message(self, text: str) -> tuple[str, str]:
        return "text", text


class CredentialError(Exception):
    pass


def _stand_in() -> dict[str, types.ModuleType]:
    names = ("dify_plugin", "dify_plugin.errors", "dify_plugin.errors.tool", "dify_plugin.entities")
    made = {name: types.ModuleType(name) for name in (*names, "dify_plugin.entities.tool")}
    vars(made["dify_plugin"]).update(Tool=Tool, ToolProvider=object)
    vars(made["dify_plugin.errors.tool"])["ToolProviderCredentialValidationError"] = CredentialError
    vars(made["dify_plugin.entities.tool"])["ToolInvokeMessage"] = tuple
    return made


@pytest.fixture
def plugin_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """`plugin_module("tools.add_note")`: that module, from the plugin's folder, with a stand-in for the SDK."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    for name, module in _stand_in().items():
        monkeypatch.setitem(sys.modules, name, module)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("board_client", "provider", "tools"):
            del sys.modules[name]
