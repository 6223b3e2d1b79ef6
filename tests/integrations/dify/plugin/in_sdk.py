"""Run by test_plugin_in_sdk.py in the plugin's folder: the SDK reads the plugin and runs one tool. Prints JSON.

In a process of its own, for the SDK patches sockets and threads when it is imported.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml
from dify_plugin import Tool, ToolProvider
from dify_plugin.core.entities.plugin.setup import PluginConfiguration
from dify_plugin.core.utils.class_loader import load_single_subclass_from_source
from dify_plugin.entities.tool import ToolProviderConfiguration

url, key = sys.argv[1:]
sys.path.insert(0, str(Path.cwd()))


def load(name: str, source: str, parent: type[Any]) -> Any:
    return load_single_subclass_from_source(module_name=name, script_path=source, parent_type=parent)


manifest = PluginConfiguration(**yaml.safe_load(Path("manifest.yaml").read_text("utf-8")))
[path] = manifest.plugins.tools
provider = ToolProviderConfiguration(**yaml.safe_load(Path(path).read_text("utf-8")))
credentials = {"board_url": url, "api_key": key}
load("loaded_provider", provider.extra.python.source, ToolProvider)().validate_credentials(credentials)
names = [tool.identity.name for tool in provider.tools]
tools = {
    name: load(f"loaded_{name}", tool.extra.python.source, Tool)
    for name, tool in zip(names, provider.tools, strict=True)
}
made = tools["create_task"].from_credentials(credentials)
told, text = list(made.invoke({"type": "trial", "payload": {"n": 1}, "task_id": "SDK-1"}))
print(json.dumps({"tools": names, "told": told.message.json_object, "text": text.message.text}))
