"""Dify: workflow apps judge tasks."""

from __future__ import annotations

from board.ports import Handler
from integrations.dify.workflow import Workflow


def handlers() -> list[Handler]:
    """What the entry point `board.handlers` names."""
    return [Workflow()]
