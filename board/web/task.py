"""One task: what came in, what came out, what happened, and what may be done with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Header
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from board.access.rights import Act
from board.effects import resend as callbacks
from board.effects import shown
from board.effects.addresses import masked
from board.effects.resend import NotResendable
from board.following import EventStream, Following, last_event
from board.review import read as reviews
from board.signals.callers import Caller
from board.tasks import edit, history, read, runnow
from board.tasks.ledger import Stale
from board.tasks.states import TERMINAL, IllegalMove, Status
from board.tasks.view import event_document
from board.tasks.visible import visible
from board.web import hidden, tasks
from board.web.forms import OwnForm
from board.web.routing import PageRouter
from board.web.tree import tree
from board.web.visit import CHANNEL, TheReader, Visit
from board.web.wording import said

router = PageRouter()
Answer = HTMLResponse | RedirectResponse


@router.show("/tasks/{task_id}")
def task_page(task_id: str, visit: TheReader) -> Answer:
    return _page(visit, task_id)


@router.get("/tasks/{task_id}/live", response_model=None)
async def live(task_id: str, visit: TheReader, last_event_id: Annotated[str | None, Header()] = None) -> Response:
    """What happens to the task, for its open page; what a reader cannot see is taken out."""

    def find_it(caller: Caller) -> None:
        with visit.board.db.read() as connection:
            caller.follow(visible(connection, visit.actor, task_id)["id"])

    with ExitStack() as leaving:
        caller = leaving.enter_context(visit.board.signals.callers.open())
        await run_in_threadpool(find_it, caller)
        leaving.pop_all()  # the stream lets go of the caller
    following = Following(
        visit.board,
        caller,
        TERMINAL,
        after=last_event(last_event_id)[0],
        may=lambda: visit.still_sees(task_id),
        shown=lambda text: hidden.strip(text, hidden.Found()),
        whole=False,
    )
    return EventStream(caller, following.events())


@router.show("/tasks/{task_id}/data.json")
def data(task_id: str, visit: TheReader) -> Response:
    """The whole of it, however long, as a file."""
    with visit.board.db.read() as connection:
        document = visit.board.task_document(connection, visible(connection, visit.actor, task_id))
    whole = {name: document[name] for name in ("task_id", "type", "title", "status", "payload", "result", "judgement")}
    return Response(
        json.dumps(whole, ensure_ascii=False, indent=2),
        media_type="application/json",
        headers={"Content-Disposition": f"attachment; filename*=UTF-8''{quote(document['task_id'], safe='')}.json"},
    )


@router.act("/tasks/{task_id}/cancel")
def cancel(task_id: str, form: OwnForm, visit: TheReader) -> Answer:
    return _acted(visit, task_id, "cancel:1:0", lambda: tasks.cancel(visit, task_id, form.one("reason") or None))


@router.act("/tasks/{task_id}/requeue")
def requeue(task_id: str, form: OwnForm, visit: TheReader) -> Answer:
    def work() -> None:
        tasks.requeue(visit, task_id, form.one("reason") or None, from_work=form.one("from") == "work")

    return _acted(visit, task_id, "requeue:1:0", work)


@router.act("/tasks/{task_id}/run-now")
def run_now(task_id: str, form: OwnForm, visit: TheReader) -> Answer:
    def work() -> None:
        with visit.board.db.write() as tx:
            row = visible(tx, visit.actor, task_id, Act.OPERATE)
            runnow.run_now(tx, visit.board.ledger, row["id"], visit.actor.by(CHANNEL))

    return _acted(visit, task_id, "run_now", work)


@router.act("/tasks/{task_id}/acknowledge")
def acknowledge(task_id: str, form: OwnForm, visit: TheReader) -> Answer:
    def work() -> None:
        tasks.acknowledge(visit, task_id, form.one("reason") or None)

    return _acted(visit, task_id, "acknowledge:1:0", work)


@router.act("/tasks/{task_id}/resend")
def resend(task_id: str, form: OwnForm, visit: TheReader) -> Answer:
    def work() -> None:
        with visit.board.db.write() as tx:
            callbacks.resend(tx, visit.actor, form.one("operation"), CHANNEL)
            visit.board.wake_outbox(tx)

    return _acted(visit, task_id, "resent", work)


@router.show("/tasks/{task_id}/{step}")
def back(task_id: str, step: str, visit: TheReader) -> Answer:
    """The address of a form, opened as a page."""
    return visit.go(f"/tasks/{quote(task_id, safe='')}")


def _page(visit: Visit, task_id: str, *, refused: str = "", code: int = 200) -> HTMLResponse:
    found, found_in_input = hidden.Found(), hidden.Found()
    with visit.board.db.read() as connection:
        row = visible(connection, visit.actor, task_id)
        task = visit.board.task_document(connection, row, places=True)
        spec = visit.board.catalogue.version(connection, row["type"], row["type_version"]).spec
        values: dict[str, Any] = {
            "task": task,
            "title": hidden.strip(task["title"], found) or task["task_id"],
            "type_title": spec.shown_title(visit.language.code),
            "callback": masked(task["callback_url"]) if task["callback_url"] else None,
            "judgement": hidden.strip_all(task["judgement"], found),
            "output": None if task["result"] is None else tree(hidden.strip_all(task["result"], found), markdown=True),
            "input": tree(hidden.strip_all(task["payload"], found_in_input)),
            "hidden": hidden.named(found),
            "hidden_in_input": hidden.named(found_in_input),
            "visits": reviews.of_task(connection, row["id"]),
            "attempts": [read.attempt_document(item) for item in reversed(read.attempts_of(connection, row["id"]))],
            "operations": shown.of_task(connection, row["id"]),
            "events": [event_document(item) for item in reversed(history.events_of(connection, row["id"]))],
        }
    own = task["requester"] == visit.actor.identity
    editable = Status(task["status"]) in edit.PAYLOAD_OPEN and visit.may(Act.OPERATE, own=own)
    possible = tasks.possible(visit, task)
    follow = Status(task["status"]) not in TERMINAL
    return visit.page("task.html", code, possible=possible, editable=editable, refused=refused, follow=follow, **values)


def _acted(visit: Visit, task_id: str, note: str, work: Callable[[], None]) -> Answer:
    try:
        work()
    except (IllegalMove, Stale, NotResendable) as error:
        return _page(visit, task_id, refused=said(visit.language, error), code=409)
    return visit.go(f"/tasks/{quote(task_id, safe='')}", note=note)
