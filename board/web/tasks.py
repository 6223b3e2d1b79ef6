"""All tasks as a table: filtered, sorted, page by page, with what may be done to one or to several."""

from __future__ import annotations

from typing import Any

from fastapi.responses import HTMLResponse, RedirectResponse

from board.access.rights import Act, Forbidden
from board.catalogue import store
from board.signals.signal import Call
from board.tasks import acknowledge as acknowledging
from board.tasks import read
from board.tasks import requeue as requeuing
from board.tasks.ledger import Stale
from board.tasks.states import Actor as Mover
from board.tasks.states import IllegalMove, Move, Phase, Status, legal
from board.tasks.visible import NoSuchTask, visible
from board.web import hidden
from board.web.forms import OwnForm
from board.web.routing import PageRouter
from board.web.visit import CHANNEL, TheReader, Visit, own_path

router = PageRouter()
PRIORITIES = ("P0", "P1", "P2", "P3")
SORTS = ("-created_at", "created_at", "-updated_at", "priority", "-priority", "status", "type", "title", "task_id")


@router.show("/tasks")
def tasks_page(visit: TheReader) -> HTMLResponse:
    asked = _asked(visit)
    filters = read.Filters(
        status=tuple(asked["status"]),
        type=tuple(asked["type"]),
        priority=tuple(asked["priority"]),
        source=(asked["source"],) if asked["source"] else (),
        tag=(asked["tag"],) if asked["tag"] else (),
        q=asked["q"] or None,
    )
    cursor = visit.request.query_params.get("cursor")
    with visit.board.db.read() as connection:
        page = read.list_tasks(connection, filters, sort=asked["sort"], cursor=cursor or None)
        documents = visit.board.task_documents(connection, page.rows)
        types = [row["name"] for row in store.list_types(connection)]
    return visit.page(
        "tasks.html",
        rows=[_row(visit, item) for item in documents],
        next_cursor=page.next_cursor,
        asked=asked,
        types=types,
        filtered=any(value for name, value in asked.items() if name != "sort"),
        beginning=not cursor,
    )


@router.act("/tasks/act")
def act(form: OwnForm, visit: TheReader) -> RedirectResponse:
    """`do`: cancel, requeue or acknowledge, for the selected tasks or, as `cancel:TASK_ID`, for one. Each by itself:
    what one task refuses does not hold up the others."""
    what, _, one = form.one("do").partition(":")
    chosen = [one] if one else form.many("task")[:200]
    done = sum(_done(visit, what, task_id) for task_id in chosen)
    note = f"{what}:{done}:{len(chosen) - done}" if chosen else "none_selected"
    return visit.go(own_path(form.one("next")), note=note)


def cancel(visit: Visit, task_id: str, reason: str | None) -> None:
    """Raises NoSuchTask, Forbidden, IllegalMove, Stale."""
    board = visit.board
    with board.db.write() as tx:
        row = visible(tx, visit.actor, task_id, Act.OPERATE)
        board.ledger.cancel(tx, board.ledger.lock(tx, row["id"]), visit.actor.by(CHANNEL), reason)
    board.signals.send(Call.CANCEL)


def requeue(visit: Visit, task_id: str, reason: str | None, *, from_work: bool = False) -> None:
    """Raises as `cancel` does."""
    board = visit.board
    with board.db.write() as tx:
        row = visible(tx, visit.actor, task_id, Act.OPERATE)
        by = visit.actor.by(CHANNEL)
        requeuing.requeue(tx, board.ledger, board.catalogue, row["id"], by, reason=reason, from_work=from_work)


def acknowledge(visit: Visit, task_id: str, reason: str | None) -> None:
    """Raises as `cancel` does."""
    board = visit.board
    with board.db.write() as tx:
        row = visible(tx, visit.actor, task_id, Act.OPERATE)
        acknowledging.acknowledge(tx, board.ledger, row["id"], visit.actor.by(CHANNEL), reason)


def possible(visit: Visit, task: dict[str, Any]) -> set[str]:
    """What this person may do with the task from where it stands: cancel, requeue, run_now, acknowledge, resend."""
    if not visit.may(Act.OPERATE, own=task["requester"] == visit.actor.identity):
        return set()
    moves = {str(move) for move in legal(Status(task["status"]), Phase(task["phase"]), Mover.OPERATOR)}
    if task["status"] == Status.RUNNING and not task["cancel_requested"]:
        moves.add(Move.CANCEL)
    if task["status"] == Status.FAILED and task["acknowledged_at"] is None:
        moves.add("acknowledge")
    return moves & {Move.CANCEL, Move.REQUEUE, Move.RUN_NOW, "acknowledge"} | {"resend"}


def _done(visit: Visit, what: str, task_id: str) -> bool:
    try:
        if what == "cancel":
            cancel(visit, task_id, None)
        elif what == "requeue":
            requeue(visit, task_id, None)
        elif what == "acknowledge":
            acknowledge(visit, task_id, None)
        else:
            return False
    except (NoSuchTask, Forbidden, IllegalMove, Stale):
        return False
    return True


def _row(visit: Visit, task: dict[str, Any]) -> dict[str, Any]:
    found: hidden.Found = hidden.Found()
    return task | {"title": hidden.strip(task["title"], found), "possible": possible(visit, task)}


def _asked(visit: Visit) -> dict[str, Any]:
    """The filters of the address, as texts and lists; what is not known is left out."""
    params = visit.request.query_params

    def several(name: str) -> list[str]:
        return [part for value in params.getlist(name) for part in value.split(",") if part]

    def one(name: str) -> str:
        return params.get(name, "").replace("\0", "").strip()[:200]

    return {
        "status": [item for item in several("status") if item in list(Status)],
        "type": several("type"),
        "priority": [item for item in several("priority") if item in PRIORITIES],
        "source": one("source"),
        "tag": one("tag"),
        "q": one("q"),
        "sort": one("sort") if one("sort") in SORTS else read.DEFAULT_SORT,
    }
