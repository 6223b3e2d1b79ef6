"""Dify: apps of every kind judge tasks."""

from __future__ import annotations

from board.ports import Handler
from integrations.dify.chat import Chat, Completion
from integrations.dify.workflow import Workflow


def handlers() -> list[Handler]:
    """What the entry point `board.handlers` names."""
    return [Workflow(), Chat(), Completion()]
