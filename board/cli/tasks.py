"""`board submit`, `tasks`, `show`, `cancel`, `requeue`, `acknowledge`: what an operator does with tasks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from sqlalchemy import Connection, RowMapping

from board import settings as all_settings
from board.access.rights import CONSOLE
from board.cli.output import AsJson, day, print_json, print_table, remark
from board.rooms import Board, open_board
from board.signals.signal import Call
from board.tasks import acknowledge as acknowledging
from board.tasks import intake, read
from board.tasks.history import events_of
from board.tasks.ids import canonical
from board.tasks.intake import TaskIn
from board.tasks.ledger import find
from board.tasks.text import parse
from board.tasks.view import event_document
from board.tasks.visible import visible

BY = CONSOLE.by("cli")
TaskId = Annotated[str, typer.Argument(metavar="ID", help="The task's unique ID.")]
Reason = Annotated[str | None, typer.Option(help="Kept in the history.")]


def submit(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.json", help="A body of POST /tasks, or a list of them; - reads stdin.")
    ],
    as_json: AsJson = False,
) -> None:
    """Put tasks in. One that exists is told, not made twice."""
    raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    loaded = parse(raw)
    bodies = [TaskIn.model_validate(item) for item in (loaded if isinstance(loaded, list) else [loaded])]
    with _opened() as board:
        with board.db.write() as tx:
            seen = board.intake.look(tx)
            prepared = [(body, board.intake.prepare(tx, body, BY, seen=seen)) for body in bodies]
            taken = board.intake.store(tx, prepared, BY)
        with board.db.read() as connection:
            found = [(item, find(connection, item.task_id)) for item in taken]
    answers = [
        {
            "task_id": item.task_id,
            "status": row["status"] if row else item.archived_status,
            "created": item.created,
            "payload_differs": item.payload_differs,
        }
        for item, row in found
    ]
    if as_json:
        print_json({"data": answers})
        return
    for answer in answers:
        print(f"{answer['task_id']}  {'created' if answer['created'] else 'exists already, ' + str(answer['status'])}")


def tasks(
    status: Annotated[str, typer.Option(help="Only these, separated by commas.")] = "",
    type: Annotated[str, typer.Option(help="Only these types, separated by commas.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=200)] = 50,
    as_json: AsJson = False,
) -> None:
    """List tasks, newest first."""
    filters = read.Filters(status=_split(status), type=_split(type))
    with _opened() as board, board.db.read() as connection:
        page = read.list_tasks(connection, filters, limit=limit)
        if as_json:
            documents = board.task_documents(connection, page.rows, places=True)
            print_json({"data": documents, "next_cursor": page.next_cursor})
            return
    rows = [
        (r["task_id"], r["type"], r["status"], f"P{r['priority']}", day(r["created_at"]), r["title"]) for r in page.rows
    ]
    print_table(("ID", "TYPE", "STATUS", "PRIORITY", "CREATED", "TITLE"), rows)
    if page.next_cursor:
        remark(f"There are more than {limit}; narrow with --status or --type, or raise --limit.")


def show(task_id: TaskId, as_json: AsJson = False) -> None:
    """Show one task with its history."""
    with _opened() as board, board.db.read() as connection:
        row = _task(connection, task_id)
        document = board.task_document(connection, row, places=True)
        events = [event_document(item) for item in events_of(connection, row["id"])]
    if as_json:
        print_json({**document, "events": events})
        return
    for name in (
        "task_id",
        "type",
        "title",
        "status",
        "phase",
        "priority",
        "retry_count",
        "last_error",
        "next_retry_at",
    ):
        if document[name] not in (None, ""):
            print(f"{name}: {document[name]}")
    if document["waiting_for"]:
        print(f"waiting_for: {document['waiting_for']['message']}")
    for name in ("payload", "result", "judgement"):
        print(f"{name}: {json.dumps(document[name], ensure_ascii=False)}")
    for event in events:
        move = f"{event['from'] or '·'} → {event['to']}" if event["to"] else "·"
        print(f"{event['at']}  {event['kind']}  {move}  {event['actor']['name']}  {event['note'] or ''}".rstrip())


def cancel(task_id: TaskId, reason: Reason = None, as_json: AsJson = False) -> None:
    """Cancel a task; a running one is asked to stop."""
    with _opened() as board:
        with board.db.write() as tx:
            board.ledger.cancel(tx, board.ledger.lock(tx, _task(tx, task_id)["id"]), BY, reason)
        board.signals.send(Call.CANCEL)
        _tell(board, task_id, as_json)


def requeue(
    task_id: TaskId,
    reason: Reason = None,
    from_work: Annotated[
        bool, typer.Option("--from-work", help="Start anew, also when only the action failed.")
    ] = False,
    type_version: Annotated[str, typer.Option(help="current or original.")] = "current",
    as_json: AsJson = False,
) -> None:
    """Put a failed or cancelled task back, with a fresh retry budget."""
    if type_version not in ("current", "original"):
        raise typer.BadParameter("use current or original.", param_hint="--type-version")
    version: Literal["current", "original"] = "original" if type_version == "original" else "current"
    with _opened() as board:
        again = partial(intake.requeue, reason=reason, from_work=from_work, type_version=version)
        with board.db.write() as tx:
            again(tx, board.ledger, board.catalogue, _task(tx, task_id)["id"], BY)
        _tell(board, task_id, as_json)


def acknowledge(
    task_ids: Annotated[list[str], typer.Argument(metavar="ID…", help="Failed tasks.")],
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Say that failures were seen, so that the tasks may be archived after their retention: all of them, or none."""
    with _opened() as board, board.db.write() as tx:
        for task_id in task_ids:
            acknowledging.acknowledge(tx, board.ledger, _task(tx, task_id)["id"], BY, reason)
    if as_json:
        print_json({"data": [{"task_id": canonical(task_id), "acknowledged": True} for task_id in task_ids]})
        return
    for task_id in task_ids:
        print(f"{canonical(task_id)}  acknowledged")


@contextmanager
def _opened() -> Iterator[Board]:
    """The board of this folder and environment. What is done on it the other processes hear at once."""
    board = open_board(all_settings.load())
    board.signals.start(())
    try:
        yield board
    finally:
        board.close()


def _task(connection: Connection, task_id: str) -> RowMapping:
    return visible(connection, CONSOLE, task_id)


def _tell(board: Board, task_id: str, as_json: bool) -> None:
    with board.db.read() as connection:
        document: dict[str, Any] = board.task_document(connection, _task(connection, task_id))
    if as_json:
        print_json(document)
    else:
        asked = " (asked to stop)" if document["cancel_requested"] else ""
        print(f"{document['task_id']}  {document['status']}{asked}")


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
