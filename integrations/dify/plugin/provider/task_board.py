"""The credentials of a board, checked when somebody saves them in Dify."""

from __future__ import annotations

from typing import Any

import board_client
from dify_plugin import ToolProvider
from dify_plugin.errors.tool import ToolProviderCredentialValidationError


class TaskBoardProvider(ToolProvider):
    def _validate_credentials(self, credentials: dict[str, Any]) -> None:
        try:
            board_client.check(credentials)
        except board_client.BoardError as error:
            raise ToolProviderCredentialValidationError(str(error)) from error
