"""The verbs that change nothing: get_task, find_tasks, get_decision."""

from __future__ import annotations

from typing import Any

from board.access.rights import Act
from board.api.errors import ApiError
from board.catalogue.spec import PRIORITIES
from board.db.clock import read_now
from board.review.read import decision
from board.review.visits import latest_review
from board.tasks import read
from board.tasks.history import notes_of
from board.tasks.states import TERMINAL, Status
from board.tasks.view import time
from board.tasks.visible import visible
from board.tools import shown
from board.tools.arguments import Argument, Kind
from board.tools.verb import WAIT, Call, Reply, Unfinished, Verb

# So many tasks a model can look through.
USUAL_NUMBER, MOST_TASKS = 10, 25
MOST_NOTES = 5
_SETTLED = TERMINAL | {Status.NEEDS_REVIEW}

TASK_ID = Argument("task_id", "The ID of the task, as it was given or answered when the task was filed.", required=True)
_QUERY = Argument("query", "Words that stand in the title or the ID of the task.")
_STATUS = Argument("status", "Only tasks with this status.", Kind.LIST, choices=list(Status))
_TYPE = Argument("type", "Only tasks of these types, by their names.", Kind.LIST)
_PRIORITY = Argument("priority", "Only tasks with this priority.", Kind.LIST, choices=PRIORITIES)
_TAG = Argument("tag", "Only tasks with one of these tags.", Kind.LIST)
_LIMIT = Argument("limit", f"How many at most, {USUAL_NUMBER} when left out, up to {MOST_TASKS}.", Kind.NUMBER)


def get(call: Call) -> Reply:
    board = call.board
    with board.db.read() as connection:
        row = visible(connection, call.actor, call.given.needed("task_id"))
        notes = notes_of(connection, row["id"], MOST_NOTES)
        body = shown.whole(board.task_document(connection, row, places=True), notes)
    settled = Status(row["status"]) in _SETTLED
    return Reply(body, unfinished=None if settled else Unfinished(row["id"], row["event_seq"]))


def find(call: Call) -> Reply:
    board, actor, given = call.board, call.actor, call.given
    actor.require(Act.READ_OWN)
    limit = given.number("limit")
    if limit is not None and (limit != int(limit) or not 1 <= limit <= MOST_TASKS):
        problem = f"must be a whole number from 1 to {MOST_TASKS}"
        raise ApiError(422, "invalid_field", f"limit: {problem}.", [{"field": "limit", "message": problem}])
    filters = read.Filters(
        status=tuple(given.names("status")),
        type=tuple(given.names("type")),
        priority=tuple(given.names("priority")),
        tag=tuple(given.names("tag")),
        q=given.text("query"),
        requester=None if actor.may(Act.READ) else actor.identity,
    )
    with board.db.read() as connection:
        page = read.list_tasks(connection, filters, limit=int(limit or USUAL_NUMBER))
        found = [shown.brief(task) for task in board.task_documents(connection, page.rows)]
    more = page.next_cursor is not None
    message = "No task fits." if not found else "There are more; narrow the search." if more else "These are all."
    return Reply({"tasks": found, "count": len(found), "more": more, "message": message})


def decided(call: Call) -> Reply:
    with call.board.db.read() as connection:
        row = visible(connection, call.actor, call.given.needed("task_id"))
        review = latest_review(connection, row["id"])
        told, again = _told(connection, row, review)
    body = {"task_id": row["task_id"], "status": row["status"], **told}
    wait = (not told["decided"] and Status(row["status"]) not in TERMINAL) or again is not None
    return Reply(body, unfinished=Unfinished(row["id"], row["event_seq"], again) if wait else None)


def _told(connection: Any, row: Any, review: Any) -> tuple[dict[str, Any], float | None]:
    """What is to be said of the last review, and in how many seconds that is final, where it is not yet."""
    status = Status(row["status"])
    if review is None:
        return {"decided": False, "message": f"No person was asked about this task. {shown.what_next(status)}"}, None
    if review["status"] == "open":
        asked = {"asked_because": review["reason"], "asked_at": time(review["opened_at"])}
        message = "No person has decided yet. Call get_decision again later, or with wait_seconds."
        return {"decided": False, **asked, "message": message}, None
    if review["status"] != "decided":
        return {"decided": False, "message": f"The question was closed without a decision; the task is {status}."}, None
    made = {name: value for name, value in decision(review).items() if name in _SHOWN and value is not None}
    left = (review["undo_until"] - read_now(connection)).total_seconds() if review["undo_until"] else 0.0
    if left > 0:
        message = "A person has decided, but may still take it back. Call get_decision again in a few seconds."
        return {"decided": False, "final_at": time(review["undo_until"]), "message": message}, left
    return {"decided": True, **made, "message": _MEANS.get(review["verdict"], "A person has answered.")}, None


_SHOWN = ("verdict", "by", "at", "instruction", "reason", "reason_class")
_MEANS = {
    "approve": "Approved: you may go on.",
    "revise": "Sent back: do it again as the instruction says.",
    "reject": "Rejected: do not do it.",
}

GET_TASK = Verb(
    "get_task",
    "Look at a task",
    "Tells how a task stands: its status, its result once it is done, its error if it failed, the last notes, and what "
    "to do next.",
    (TASK_ID, WAIT),
    get,
    only_reads=True,
)
FIND_TASKS = Verb(
    "find_tasks",
    "Find tasks",
    "Finds tasks by words, status, type, priority or tag, the newest first. Use it when you do not know the task_id, "
    "or to see whether something was filed before. Without any argument it lists the newest tasks.",
    (_QUERY, _STATUS, _TYPE, _PRIORITY, _TAG, _LIMIT),
    find,
    only_reads=True,
)
GET_DECISION = Verb(
    "get_decision",
    "Learn what a person decided",
    "Tells what a person decided about a task that was put before one: decided is true or false, verdict is approve, "
    "revise or reject. As long as decided is false, nobody has allowed anything.",
    (TASK_ID, WAIT),
    decided,
    only_reads=True,
)
