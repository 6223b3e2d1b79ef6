"""/tasks: in, out, and by ID."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import JSONResponse
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from board.access.rights import Act, Actor
from board.api.deps import (
    CHANNEL,
    DEFAULT_LIMIT,
    Cursor,
    Limit,
    Several,
    TheActor,
    TheBoard,
    in_thread,
    split,
)
from board.api.errors import EXPECTED, ApiError, translate
from board.api.strict import StrictRequest, StrictRoute, listing, ok
from board.api.waiting import until_settled
from board.rooms import Board
from board.tasks import edit, history, read, view
from board.tasks.intake import Taken, TaskIn
from board.tasks.ledger import find
from board.tasks.text import BadJson, NotJson, parse
from board.tasks.visible import visible

router = APIRouter(prefix="/tasks", tags=["tasks"], route_class=StrictRoute)

MAX_BULK = 1000
Wait = Annotated[float | None, Query(ge=0, le=60, description="seconds to wait for the result, at most 60")]


@router.post("", status_code=201)
async def create_task(
    body: TaskIn,
    board: TheBoard,
    actor: TheActor,
    wait: Wait = None,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> JSONResponse:
    """Put a task in. 201 when it is new, 200 with `duplicate: true` when its ID exists; nothing is ever made twice."""
    actor.require(Act.SUBMIT)

    def take() -> tuple[Taken, dict[str, Any]]:
        with board.db.write() as tx:
            taken = board.intake.take(tx, body, actor.by(CHANNEL), idempotency_key or None)
        with board.db.read() as connection:
            return taken, _answer(board, connection, taken)

    taken, document = await in_thread(take)
    status = 201 if taken.created else 200
    if wait and taken.archived_status is None:
        settled, document = await until_settled(board, taken.task_id, wait, document)
        status = status if settled else 202
    return ok(document | _flags(taken), status)


class BulkIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tasks: list[Any] = Field(min_length=1, max_length=MAX_BULK)


@router.post(
    "/bulk",
    openapi_extra={"requestBody": {"content": {"application/json": {"schema": BulkIn.model_json_schema()}}}},
)
async def create_many(request: Request, board: TheBoard, actor: TheActor) -> JSONResponse:
    """Put up to 1000 tasks in: {"tasks": […]}, or one JSON object a line. One bad item never spoils the rest."""
    actor.require(Act.SUBMIT)
    assert isinstance(request, StrictRequest)
    items = _bulk_items(await request.body())
    outcomes = await in_thread(lambda: _take_many(board, actor, items))
    counts = {name: sum(item["status"] == name for item in outcomes) for name in ("created", "duplicate", "error")}
    return ok(
        {
            "created": counts["created"],
            "duplicates": counts["duplicate"],
            "errors": counts["error"],
            "data": outcomes,
        }
    )


@router.get("")
def list_tasks(
    request: Request,
    board: TheBoard,
    actor: TheActor,
    status: Several = None,
    type: Several = None,
    priority: Several = None,
    source: Several = None,
    tag: Several = None,
    q: str | None = None,
    task_id: str | None = None,
    created_from: AwareDatetime | None = None,
    created_to: AwareDatetime | None = None,
    sort: str | None = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> JSONResponse:
    """Tasks by filters, newest first unless `sort` says otherwise."""
    actor.require(Act.READ_OWN)
    filters = read.Filters(
        status=split(status),
        type=split(type),
        priority=split(priority),
        source=split(source),
        tag=split(tag),
        q=q or None,
        task_id=task_id,
        created_from=created_from,
        created_to=created_to,
        requester=None if actor.may(Act.READ) else actor.identity,
    )
    with board.db.read() as connection:
        page = read.list_tasks(connection, filters, sort=sort, cursor=cursor, limit=limit)
        return listing(board.task_documents(connection, page.rows), page.next_cursor, request)


@router.get("/{task_id}")
async def get_task(task_id: str, board: TheBoard, actor: TheActor, wait: Wait = None) -> JSONResponse:
    """One task. With `wait`, as soon as it is done, asks a person or has failed; else with the state so far."""

    def load() -> dict[str, Any]:
        with board.db.read() as connection:
            return board.task_document(connection, visible(connection, actor, task_id))

    document = await in_thread(load)
    if wait:
        _, document = await until_settled(board, document["task_id"], wait, document)
    return ok(document)


@router.patch("/{task_id}")
def edit_task(task_id: str, body: edit.TaskEdit, board: TheBoard, actor: TheActor) -> JSONResponse:
    """Change fields; `version` must be the one that was read."""
    with board.db.write() as tx:
        row = visible(tx, actor, task_id, Act.OPERATE)
        edit.apply(tx, board.ledger, board.catalogue, board.visits.content_changed, row["id"], body, actor.by(CHANNEL))
    with board.db.read() as connection:
        return ok(board.task_document(connection, visible(connection, actor, task_id)))


@router.get("/{task_id}/events")
def list_events(
    task_id: str,
    request: Request,
    board: TheBoard,
    actor: TheActor,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> JSONResponse:
    """The history of a task, oldest first."""
    with board.db.read() as connection:
        row = visible(connection, actor, task_id)
        seq = int(cursor) if cursor and cursor.isdigit() else 0
        rows = history.events_of(connection, row["id"], seq, limit + 1)
        more = str(rows[limit - 1]["seq"]) if len(rows) > limit else None
        return listing([view.event_document(item) for item in rows[:limit]], more, request)


@router.get("/{task_id}/attempts")
def list_attempts(task_id: str, board: TheBoard, actor: TheActor) -> JSONResponse:
    """Every claim of a task and what came of it, oldest first."""
    with board.db.read() as connection:
        row = visible(connection, actor, task_id)
        return listing([read.attempt_document(item) for item in read.attempts_of(connection, row["id"])])


# -- parts --------------------------------------------------------------------------------------------------------


def _answer(board: Board, connection: Any, taken: Taken) -> dict[str, Any]:
    if taken.archived_status is not None:
        return {"task_id": taken.task_id, "status": taken.archived_status}
    row = find(connection, taken.task_id)
    assert row is not None
    return board.task_document(connection, row)


def _flags(taken: Taken) -> dict[str, Any]:
    flags: dict[str, Any] = {} if taken.created else {"duplicate": True}
    if taken.payload_differs:
        flags["payload_differs"] = True
    if taken.archived_status is not None:
        flags["archived"] = True
    return flags


def _bulk_items(raw: bytes) -> list[Any]:
    """The items of the body. One that is no JSON on its line stays as its error."""
    try:
        whole = parse(raw)
        if isinstance(whole, dict) and "tasks" in whole:
            return BulkIn.model_validate(whole).tasks
        lines = raw.splitlines()
    except NotJson:
        lines = raw.splitlines()
    except BadJson:  # NaN or a bad character in one item: read them one by one where that is possible
        lines = raw.splitlines()
        if len([line for line in lines if line.strip()]) == 1:
            return _loose(raw)
    except ValidationError as error:
        problem = error.errors()[0]
        raise ApiError(422, "invalid_field", f"tasks: {problem['msg']}.", [{"field": "tasks"}]) from error
    items = [_line(line) for line in lines if line.strip()]
    if not items or len(items) > MAX_BULK:
        raise ApiError(422, "invalid_field", f"tasks: send 1 to {MAX_BULK} tasks.", [{"field": "tasks"}])
    if len(items) == 1 and isinstance(items[0], NotJson):
        raise ApiError(400, "invalid_json", str(items[0]))
    if len(items) == 1 and isinstance(items[0], dict) and "type" not in items[0]:
        raise ApiError(422, "invalid_field", 'tasks: is missing; send {"tasks": […]} or one object a line.')
    return items


def _line(line: bytes) -> Any:
    try:
        return parse(line)
    except (NotJson, BadJson) as error:
        return error


def _loose(raw: bytes) -> list[Any]:
    whole = json.loads(raw)
    tasks = whole.get("tasks") if isinstance(whole, dict) else None
    if not isinstance(tasks, list) or not 1 <= len(tasks) <= MAX_BULK:
        raise ApiError(422, "invalid_field", f"tasks: send 1 to {MAX_BULK} tasks.", [{"field": "tasks"}])
    return [_line(json.dumps(item).encode()) for item in tasks]


def _take_many(board: Board, actor: Actor, items: list[Any]) -> list[dict[str, Any]]:
    outcomes: list[dict[str, Any]] = [{} for _ in items]
    ready: list[tuple[int, TaskIn, dict[str, Any]]] = []
    by = actor.by(CHANNEL)
    with board.db.write() as tx:
        for index, item in enumerate(items):
            try:
                if isinstance(item, Exception):
                    raise item
                body = TaskIn.model_validate(item)
                ready.append((index, body, board.intake.prepare(tx, body, by)))
            except ValidationError as error:
                outcomes[index] = _failed(index, item, _first(error))
            except (NotJson, BadJson) as error:
                place = f"{error.path} " if isinstance(error, BadJson) else ""
                outcomes[index] = _failed(index, item, ApiError(422, "invalid_text", f"{place}{error}"))
            except EXPECTED as error:
                outcomes[index] = _failed(index, item, translate(error))
        plain = [entry for entry in ready if entry[1].on_duplicate != "reject"]
        for (index, _, _), taken in zip(
            plain, board.intake.store(tx, [(body, row) for _, body, row in plain], by), strict=True
        ):
            outcomes[index] = _outcome(index, taken)
        for index, body, row in (entry for entry in ready if entry[1].on_duplicate == "reject"):
            try:
                outcomes[index] = _outcome(index, board.intake.store(tx, [(body, row)], by)[0])
            except EXPECTED as error:
                outcomes[index] = _failed(index, {"task_id": row["task_id"]}, translate(error))
    return outcomes


def _outcome(index: int, taken: Taken) -> dict[str, Any]:
    status = "created" if taken.created else "duplicate"
    return {"index": index, "task_id": taken.task_id, "status": status} | {
        key: value for key, value in _flags(taken).items() if key != "duplicate"
    }


def _failed(index: int, item: Any, error: ApiError) -> dict[str, Any]:
    task_id = item.get("task_id") if isinstance(item, dict) else None
    return {
        "index": index,
        "task_id": task_id if isinstance(task_id, str) else None,
        "status": "error",
        "message": error.message,
        "code": error.code,
    }


def _first(error: ValidationError) -> ApiError:
    from fastapi.exceptions import RequestValidationError

    return translate(RequestValidationError(error.errors()))
