"""The tool `get_decision`; what it takes is described in get_decision.yaml."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import board_client
from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage


class GetDecision(Tool):
    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        yield from board_client.answer(self, "get_decision", tool_parameters)
