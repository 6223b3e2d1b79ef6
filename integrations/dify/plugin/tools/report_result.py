"""The tool `report_result`; what it takes is described in report_result.yaml."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import board_client
from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage


class ReportResult(Tool):
    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        yield from board_client.answer(self, "report_result", tool_parameters)
