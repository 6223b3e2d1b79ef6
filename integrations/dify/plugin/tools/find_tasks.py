"""The tool `find_tasks`; what it takes is described in find_tasks.yaml."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import board_client
from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage


class FindTasks(Tool):
    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        yield from board_client.answer(self, "find_tasks", tool_parameters)
