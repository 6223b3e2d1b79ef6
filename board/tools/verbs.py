"""What an agent can do with the board: one list, for Dify's tool document, for MCP and for the pages about them."""

from __future__ import annotations

from board.tools.filing import CREATE_TASK, REQUEST_REVIEW
from board.tools.looking import FIND_TASKS, GET_DECISION, GET_TASK
from board.tools.telling import ADD_NOTE, REPORT_RESULT
from board.tools.verb import Verb

VERBS: tuple[Verb, ...] = (
    CREATE_TASK,
    GET_TASK,
    FIND_TASKS,
    ADD_NOTE,
    REQUEST_REVIEW,
    GET_DECISION,
    REPORT_RESULT,
)
BY_NAME = {verb.name: verb for verb in VERBS}
