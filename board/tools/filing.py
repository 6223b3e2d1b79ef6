"""The verbs that put tasks in: create_task, and request_review, which puts a question before a person."""

from __future__ import annotations

from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from board.access.rights import Act
from board.api.errors import ApiError
from board.catalogue.spec import PRIORITIES, TypeSpec
from board.catalogue.store import list_types
from board.tasks.intake import Problem, Taken, TaskIn
from board.tasks.ledger import find
from board.tools.arguments import Argument, Kind
from board.tools.shown import what_next
from board.tools.verb import Call, Reply, Verb

MOST_TYPES = 40  # names of types in a refusal; a model reads all of them

_TYPE = Argument("type", "The kind of work: the name of a task type of this board.", required=True)
_PAYLOAD = Argument("payload", "What the work is about: the fields that this type of task asks for.", Kind.OBJECT)
_TASK_ID = Argument(
    "task_id",
    "Your own ID for exactly this piece of work, such as lead:4711, at most 200 characters. The same ID never makes a "
    "second task, so send the same one when you repeat a call. Leave it out where the type makes IDs itself.",
)
_TITLE = Argument("title", "A short title that people read in lists.")
_PRIORITY = Argument(
    "priority", "How urgent it is; P0 is the most urgent, P2 is usual.", Kind.CHOICE, False, PRIORITIES
)
_TAGS = Argument("tags", "Words by which the task is found again.", Kind.LIST)
_NOTE = Argument("note", "A remark for the people who see the task.")
_DUE = Argument("due_at", "When it should be done: a time with its zone, such as 2026-11-30T09:00:00+08:00.")
_RUN_AFTER = Argument("run_after", "Not to be begun before this time, written such as 2026-11-30T09:00:00+08:00.")
_QUESTION = Argument(
    "question", "What a person is to decide, as one clear question that can be answered with yes or no.", required=True
)
_ABOUT = Argument("about_task_id", "The ID of the task that the question is about, if there is one.")
_DETAILS = Argument("details", "All that the person needs to know to decide.", Kind.OBJECT)
_REVIEW_TYPE = Argument(
    "type", "The task type of such questions. Leave it out where the board has only one type that goes to a person."
)


def create(call: Call) -> Reply:
    given = call.given
    body = {
        "type": given.text("type"),
        "payload": given.object("payload"),
        "title": given.text("title"),
        "run_after": given.text("run_after"),
    }
    return _file(call, body)


def ask(call: Call) -> Reply:
    call.actor.require(Act.SUBMIT)  # before anything is said about the types of this board
    given = call.given
    question = given.needed("question").strip()
    payload: dict[str, Any] = given.object("details") | {"question": question}
    if about := given.text("about_task_id"):
        payload["about_task_id"] = about
    with call.board.db.read() as connection:
        name = _direct(connection, given.text("type"))
    reply = _file(call, {"type": name, "payload": payload, "title": question[:200]})
    return Reply(
        reply.body | {"message": f"{reply.body['message']} Call get_decision with its task_id."}, reply.created
    )


def _file(call: Call, body: dict[str, Any]) -> Reply:
    board, actor, given = call.board, call.actor, call.given
    actor.require(Act.SUBMIT)
    shared = {name: given.text(name) for name in ("task_id", "priority", "note", "due_at")}
    body = {"source": call.channel, **body, **shared, "tags": given.names("tags")}
    try:
        task = TaskIn.model_validate(body)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error
    by = actor.by(call.channel)
    with board.db.read() as connection:
        try:
            prepared = board.intake.prepare(connection, task, by)
        except Problem as error:
            raise _explained(connection, task.type, error) from error
    with board.db.write() as tx:
        taken = board.intake.store(tx, [(task, prepared)], by, actor.may_operate)[0]
        board.intake_rate.charge(tx, actor, int(taken.created))
    with board.db.read() as connection:
        return Reply(_answer(call, connection, taken), created=taken.created)


def _answer(call: Call, connection: Any, taken: Taken) -> dict[str, Any]:
    document: dict[str, Any] = {"task_id": taken.task_id, "created": taken.created}
    row = find(connection, taken.task_id)
    if row is None:
        status = taken.archived_status or "archived"
        return document | {"status": status, "message": f"This task was finished long ago and is archived as {status}."}
    document["status"] = row["status"]
    if taken.created:
        message = "The task was filed."
    elif taken.payload_differs:
        message = (
            "A task with this ID exists with another payload. It was not changed; take another task_id for new work."
        )
    else:
        message = f"This task exists already; nothing was made twice. {what_next(row['status'])}"
    if call.actor.may(Act.READ, own=row["requester"] == call.actor.identity):
        document["url"] = call.board.task_document(connection, row)["links"]["ui"]
    return document | {"message": message}


def _explained(connection: Any, name: str, problem: Problem) -> ApiError:
    """A refusal of the intake that also says what would be right."""
    message = str(problem)
    if problem.code == "unknown_type":
        message = f"There is no task type “{name[:100]}”. {_names(connection)}"
    elif problem.code == "payload_invalid":
        message = f"{message.rstrip('.')}. {_takes(connection, name)}".strip()
    elif problem.field not in message:
        message = f"{problem.field}: {message}"
    return ApiError(422, problem.code, message, [{"field": problem.field, "message": str(problem)}])


def _direct(connection: Any, name: str | None) -> str:
    """The type of a question to a person. Raises ApiError where it is none, or not clear which."""
    specs = _specs(connection)
    direct = [spec.name for spec in specs if spec.handler.use == "none"]
    if name in direct:
        return name
    if name is None and len(direct) == 1:
        return direct[0]
    if not direct:
        raise ApiError(
            422,
            "no_such_type",
            "This board has no task type that goes straight to a person (handler none). Ask its owner to add one.",
            [{"field": "type", "message": "there is none"}],
        )
    problem = "Say in `type` which kind of question this is." if name is None else f"“{name[:100]}” is not such a type."
    message = f"{problem} Types that go straight to a person: {', '.join(direct[:MOST_TYPES])}."
    raise ApiError(422, "unknown_type", f"type: {message}", [{"field": "type", "message": message}])


def _names(connection: Any) -> str:
    names = [spec.name for spec in _specs(connection)]
    if not names:
        return "This board has no task types yet; its owner has to add one."
    more = f" and {len(names) - MOST_TYPES} more" if len(names) > MOST_TYPES else ""
    return f"Its types are: {', '.join(names[:MOST_TYPES])}{more}."


def _specs(connection: Any) -> list[TypeSpec]:
    return [TypeSpec.model_validate(row["spec"]) for row in list_types(connection)]


def _takes(connection: Any, name: str) -> str:
    """The fields of a type's payload in one sentence, where its schema names them."""
    schema = next((spec.payload_schema for spec in _specs(connection) if spec.name == name), None) or {}
    required = schema.get("required", [])
    fields = []
    for field, shape in schema.get("properties", {}).items():
        kind = shape.get("type") if isinstance(shape, dict) else None
        needed = "required" if field in required else "optional"
        fields.append(f"{field} ({kind}, {needed})" if isinstance(kind, str) else f"{field} ({needed})")
    fields += [f"{field} (required)" for field in required if field not in schema.get("properties", {})]
    return f"The payload of {name} takes: {', '.join(fields[:MOST_TYPES])}." if fields else ""


CREATE_TASK = Verb(
    "create_task",
    "File a task",
    "Puts a piece of work on the task board, where programs or people do it. Use it for everything that should be done "
    "later, by somebody else, or with a person's approval. The answer has the task_id, by which you find it again. "
    "Calling it twice with the same task_id makes one task only.",
    (_TYPE, _PAYLOAD, _TASK_ID, _TITLE, _PRIORITY, _TAGS, _NOTE, _DUE, _RUN_AFTER),
    create,
)
REQUEST_REVIEW = Verb(
    "request_review",
    "Ask a person to decide",
    "Puts a question before a person who approves or rejects it. Use it before anything that you must not decide "
    "alone, such as money, promises to customers or publishing. It does not wait: ask get_decision with the task_id "
    "of the answer, and do nothing of what you asked about until it says approve.",
    (_QUESTION, _DETAILS, _ABOUT, _REVIEW_TYPE, _TASK_ID, _PRIORITY, _TAGS, _NOTE, _DUE),
    ask,
)
