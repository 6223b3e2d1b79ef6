"""The handler `dify.workflow`: one task, one run of a Dify workflow app."""

from __future__ import annotations

from collections.abc import Sequence

from board.ports import Wait
from integrations.dify.app import App


class Workflow(App):
    """Runs a workflow app. Options: `workflow_id`, a published version to pin.

    wait: `stream` follows its events to the end; `blocking` holds the line for one answer; `callback` starts it and
    lets go of the line, until the workflow calls `callback.url` or its run is seen to have ended.
    """

    name = "dify.workflow"
    kind = "dify.run"
    waits: Sequence[Wait] = ("stream", "blocking", "callback")
