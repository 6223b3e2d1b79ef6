"""POST /tasks/bulk: many tasks in one call, each judged by itself."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from board.access.rights import Actor
from board.api.deps import CHANNEL, TheBoard, TheSubmitter, in_thread
from board.api.errors import EXPECTED, ApiError, field_error, translate
from board.api.strict import StrictRoute, ok
from board.rooms import Board
from board.tasks.intake import Taken, TaskIn
from board.tasks.text import BadJson, NotJson, check, load

router = APIRouter(prefix="/tasks", tags=["tasks"], route_class=StrictRoute)

MAX_BULK = 1000
_HOW = 'send {"tasks": […]} or one task a line'


class BulkIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tasks: list[Any] = Field(min_length=1, max_length=MAX_BULK)


@router.post(
    "/bulk",
    openapi_extra={"requestBody": {"content": {"application/json": {"schema": BulkIn.model_json_schema()}}}},
)
async def create_many(request: Request, board: TheBoard, actor: TheSubmitter) -> JSONResponse:
    """Put up to 1000 tasks in: {"tasks": […]}, or one JSON object a line. One bad item never spoils the rest."""
    items = read_items(await request.body())
    outcomes = await in_thread(lambda: take_many(board, actor, items))
    counts = {name: sum(item["status"] == name for item in outcomes) for name in ("created", "duplicate", "error")}
    return ok(
        {
            "created": counts["created"],
            "duplicates": counts["duplicate"],
            "errors": counts["error"],
            "data": outcomes,
        }
    )


def read_items(raw: bytes) -> list[Any]:
    """The items of a body, still to be checked; a line that is not JSON stays as its error."""
    try:
        whole = load(raw)
    except NotJson as error:
        lines = [line for line in raw.splitlines() if line.strip()]
        items = [_line(line) for line in lines]
        if not any(isinstance(item, dict) for item in items):
            raise ApiError(400, "invalid_json", str(error)) from error
    except BadJson as error:
        raise field_error("tasks", f"tasks {error}.", "invalid_text") from error
    else:
        if isinstance(whole, dict) and "tasks" not in whole and "type" in whole:
            whole = {"tasks": [whole]}  # a single line
        if not isinstance(whole, dict):
            raise field_error("tasks", f"tasks is missing; {_HOW}.", "invalid_field")
        try:
            items = BulkIn.model_validate(whole).tasks
        except ValidationError as error:
            raise translate(RequestValidationError(error.errors())) from error
    if len(items) > MAX_BULK:
        raise field_error("tasks", f"tasks holds {len(items)} tasks; send at most {MAX_BULK}.", "invalid_field")
    return items


def take_many(board: Board, actor: Actor, items: list[Any]) -> list[dict[str, Any]]:
    """The outcome of each item, in order."""
    outcomes: list[dict[str, Any]] = [{} for _ in items]
    ready: list[tuple[int, TaskIn, dict[str, Any]]] = []
    by = actor.by(CHANNEL)
    with board.db.read() as connection:
        seen = board.intake.look(connection)
        for index, item in enumerate(items):
            try:
                body = _body(item)
                ready.append((index, body, board.intake.prepare(connection, body, by, seen=seen)))
            except EXPECTED as error:
                outcomes[index] = _failed(index, item, translate(error))
    with board.db.write() as tx:
        plain = [entry for entry in ready if entry[1].on_duplicate != "reject"]
        taken = board.intake.store(tx, [(body, row) for _, body, row in plain], by, actor.may_operate)
        for (index, _, _), one in zip(plain, taken, strict=True):
            outcomes[index] = _outcome(index, one)
        for index, body, row in (entry for entry in ready if entry[1].on_duplicate == "reject"):
            try:
                outcomes[index] = _outcome(index, board.intake.store(tx, [(body, row)], by)[0])
            except EXPECTED as error:
                outcomes[index] = _failed(index, {"task_id": row["task_id"]}, translate(error))
        board.intake_rate.charge(tx, actor, sum(outcome.get("status") == "created" for outcome in outcomes))
    return outcomes


def flags(taken: Taken) -> dict[str, Any]:
    """What an answer says besides the task, where it applies."""
    said: dict[str, Any] = {} if taken.created else {"duplicate": True}
    if taken.payload_differs:
        said["payload_differs"] = True
    if taken.archived_status is not None:
        said["archived"] = True
    return said


def _line(line: bytes) -> Any:
    try:
        return load(line)
    except NotJson as error:
        return ApiError(422, "invalid_json", str(error))
    except BadJson as error:
        return ApiError(422, "invalid_text", f"{error.path} {error}.")


def _body(item: Any) -> TaskIn:
    if isinstance(item, ApiError):
        raise item
    try:
        check(item)
        return TaskIn.model_validate(item)
    except BadJson as error:
        raise field_error(error.path, f"{error.path} {error}.", "invalid_text") from error
    except ValidationError as error:
        raise translate(RequestValidationError(error.errors())) from error


def _outcome(index: int, taken: Taken) -> dict[str, Any]:
    status = "created" if taken.created else "duplicate"
    said = {name: value for name, value in flags(taken).items() if name != "duplicate"}
    return {"index": index, "task_id": taken.task_id, "status": status} | said


def _failed(index: int, item: Any, error: ApiError) -> dict[str, Any]:
    named = item.get("task_id") if isinstance(item, dict) else None
    try:
        check(named)
    except BadJson:
        named = None
    return {
        "index": index,
        "task_id": named if isinstance(named, str) else None,
        "status": "error",
        "message": error.message,
        "code": error.code,
    }
