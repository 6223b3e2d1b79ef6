"""/tasks: in, out, and by ID."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BeforeValidator, Field

from board.access.rights import Act
from board.api.bulk import flags
from board.api.deps import (
    CHANNEL,
    DEFAULT_LIMIT,
    Cursor,
    Limit,
    Several,
    TheActor,
    TheBoard,
    TheSubmitter,
    When,
    in_thread,
    split,
)
from board.api.streaming import DESCRIBED, may_follow, wants_stream
from board.api.strict import StrictRoute, listing, ok
from board.api.taking import Asked, taking
from board.api.waiting import SETTLED, until_settled
from board.db.pages import BadCursor
from board.following import EventStream, Following, last_event, look
from board.rooms import Board
from board.signals.callers import Caller
from board.tasks import edit, history, read, view
from board.tasks.intake import Taken, TaskIn
from board.tasks.states import TERMINAL
from board.tasks.visible import visible

router = APIRouter(prefix="/tasks", tags=["tasks"], route_class=StrictRoute)

_SEQ = re.compile("[0-9]{1,9}")
# An expression that came out empty in the caller's flow means that he does not wait.
Wait = Annotated[
    Annotated[float, Field(ge=0, le=60)] | None,
    BeforeValidator(lambda given: None if given == "" else given),
    Query(description="seconds to wait for the result, at most 60"),
]


@router.post("", status_code=201)
async def create_task(
    request: Request,
    body: TaskIn,
    board: TheBoard,
    actor: TheSubmitter,
    wait: Wait = None,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Response:
    """Put a task in. 201 when it is new, 200 with `duplicate: true` when its ID exists; nothing is ever made twice.

    With `Accept: text/event-stream` the answer streams what happens to it, as `GET /tasks/{task_id}/stream` does.
    """
    streamed = wants_stream(request.headers.get("accept"))

    with ExitStack() as leaving:
        caller = leaving.enter_context(board.signals.callers.open())
        asked = Asked(body, actor, _utf8(idempotency_key), bool(wait) or streamed, caller)
        taken, document = await taking(request).take(asked)
        status = 201 if taken.created else 200
        if streamed:
            leaving.pop_all()  # the stream lets go of the caller
            return _stream(board, request, caller, taken, document, wait)
        if wait and "version" in document:
            settled, document = await until_settled(board, request, caller, wait, document)
            status = status if settled else 202
    return ok(document | flags(taken), status)


def _stream(
    board: Board, request: Request, caller: Caller, taken: Taken, document: dict[str, Any], wait: float | None
) -> Response:
    status = 201 if taken.created else 200
    if "version" not in document:  # nothing more is left of it, or to be seen
        return EventStream.of_one(caller, document | flags(taken), status)
    following = Following(
        board,
        caller,
        SETTLED,
        after=0 if taken.created else None,
        seconds=wait or float("inf"),
        may=lambda: may_follow(board, request, taken.task_id),
        added=flags(taken),
    )
    return EventStream(caller, following.events(), status)


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
    created_from: When = None,
    created_to: When = None,
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
        return listing(board.task_documents(connection, page.rows, places=True), page.next_cursor, request)


@router.get("/{task_id}")
async def get_task(request: Request, task_id: str, board: TheBoard, actor: TheActor, wait: Wait = None) -> JSONResponse:
    """One task. With `wait`, as soon as it has an end or asks a person; else 202 with the state so far."""

    def load() -> dict[str, Any]:
        with board.db.read() as connection:
            return board.task_document(connection, visible(connection, actor, task_id), places=True)

    def wait_for(caller: Caller) -> dict[str, Any]:
        with board.db.read() as connection:
            row = visible(connection, actor, task_id)
        caller.follow(row["id"])
        return look(board, caller)

    if not wait:
        return ok(await in_thread(load))
    with board.signals.callers.open() as caller:
        document = await in_thread(lambda: wait_for(caller))
        settled, document = await until_settled(board, request, caller, wait, document)
    return ok(document, 200 if settled else 202)


@router.get("/{task_id}/stream", responses=DESCRIBED)
async def stream_task(
    request: Request,
    task_id: str,
    board: TheBoard,
    actor: TheActor,
    last_event_id: Annotated[str | None, Header(description="resumes behind this event")] = None,
) -> Response:
    """What happens to a task, live: `status` (its `id` is the event's number), `progress`, `text`, and `end` with the
    task once it is done, failed or cancelled. 204 where `Last-Event-ID` says that the end was seen."""
    after, seen = last_event(last_event_id)

    def find_it(caller: Caller) -> bool:
        with board.db.read() as connection:
            row = visible(connection, actor, task_id)
        caller.follow(row["id"])
        return seen and row["event_seq"] == after and row["status"] in TERMINAL

    with ExitStack() as leaving:
        caller = leaving.enter_context(board.signals.callers.open())
        if await in_thread(lambda: find_it(caller)):
            return Response(status_code=204)
        leaving.pop_all()  # the stream lets go of the caller
    following = Following(board, caller, TERMINAL, after=after, may=lambda: may_follow(board, request, task_id))
    return EventStream(caller, following.events())


@router.patch("/{task_id}")
def edit_task(task_id: str, body: edit.TaskEdit, board: TheBoard, actor: TheActor) -> JSONResponse:
    """Change fields; `version` must be the one that was read."""
    with board.db.write() as tx:
        row = visible(tx, actor, task_id, Act.OPERATE)
        edit.apply(
            tx,
            board.ledger,
            board.catalogue,
            board.files,
            board.visits.task_edited,
            row["id"],
            body,
            actor.by(CHANNEL),
        )
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
        if cursor and not _SEQ.fullmatch(cursor):
            raise BadCursor
        seq = int(cursor or 0)
        rows = history.events_of(connection, row["id"], seq, limit + 1)
        more = str(rows[limit - 1]["seq"]) if len(rows) > limit else None
        return listing([view.event_document(item) for item in rows[:limit]], more, request)


@router.get("/{task_id}/attempts")
def list_attempts(task_id: str, board: TheBoard, actor: TheActor) -> JSONResponse:
    """Every claim of a task and what came of it, oldest first."""
    with board.db.read() as connection:
        row = visible(connection, actor, task_id)
        return listing([read.attempt_document(item) for item in read.attempts_of(connection, row["id"])])


def _utf8(header: str | None) -> str | None:
    """A header's text: servers read its bytes as Latin-1, callers mostly write UTF-8. None for an empty one."""
    try:
        return (header or "").encode("latin-1").decode() or None
    except ValueError:
        return header
