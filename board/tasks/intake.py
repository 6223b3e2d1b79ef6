"""The one way in: a body becomes a task, or the task that exists, or a refusal that names the field."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from board import templating
from board.catalogue.spec import PRIORITIES, TypeSpec
from board.catalogue.store import Catalogue, LoadedType, UnknownType
from board.db.locks import Turn, wait_for_turn
from board.db.types import dump_json
from board.files.references import references
from board.ports import ConnectionView
from board.tasks.bodies import TaskIn
from board.tasks.content import FileDesk, Problem, check_files, key_of, payload_hash, payload_problem
from board.tasks.history import By, record
from board.tasks.ids import BadTaskId, canonical
from board.tasks.ledger import Ledger, find, retired
from board.tasks.models import task_data
from board.tasks.place import ahead
from board.tasks.priority import BadPriority, work_out
from board.tasks.requeue import requeue
from board.tasks.seen import Seen
from board.tasks.states import RANK_FIRST, RANK_USUAL, IllegalMove

__all__ = [
    "Duplicate",
    "Intake",
    "Problem",
    "Taken",
    "TaskIn",
    "requeue",
]


MayRequeue = Callable[[Mapping[str, Any]], bool]  # asked with the row of a task that exists


class Duplicate(Exception):
    """`on_duplicate: reject` and the task exists."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"Task “{task_id}” exists already.")
        self.task_id = task_id


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a body. archived: only the ID and last status are left of the task. id: the internal one."""

    task_id: str
    created: bool
    id: int | None = None
    payload_differs: bool = False
    archived_status: str | None = None


class Intake:
    """check_url refuses a callback address that may not be called (board.effects.guard).

    acts_outside: whether the work of a type has side effects; the type may say so, or leave it to its handler.
    """

    def __init__(
        self,
        ledger: Ledger,
        catalogue: Catalogue,
        check_url: Callable[[str, ConnectionView | None], None],
        acts_outside: Callable[[TypeSpec], bool],
        files: FileDesk,
    ) -> None:
        self._ledger = ledger
        self._catalogue = catalogue
        self._check_url = check_url
        self._acts_outside = acts_outside
        self.files = files

    def take(self, tx: Connection, body: TaskIn, by: By, idempotency_key: str | None = None) -> Taken:
        """Make the task, or find the one that has its ID. Raises Problem, Duplicate."""
        prepared = self.prepare(tx, body, by, idempotency_key)
        return self.store(tx, [(body, prepared)], by)[0]

    def look(self, connection: Connection) -> Seen:
        """What the bodies of one call are checked against."""
        return Seen(connection, self._catalogue)

    def prepare(
        self,
        connection: Connection,
        body: TaskIn,
        by: By,
        idempotency_key: str | None = None,
        *,
        waited: bool = False,
        seen: Seen | None = None,
    ) -> dict[str, Any]:
        """The body checked against its type and turned into a row. Nothing is written. Raises Problem.

        waited: the caller stays on the line for the result, so the task comes first in its lane. seen: `look` on this
        connection, for the bodies of one call.
        May look up the name of a host, which takes its time: on SQLite better done before the one writer's turn.
        """
        seen = seen or self.look(connection)
        try:
            loaded = seen.type(body.type)
        except UnknownType as error:
            raise Problem("type", str(error), "unknown_type") from error
        for name in ("needs", "fields"):
            if getattr(body, name) not in (None, [], {}):
                raise Problem(name, f"{name} is not yet supported; leave it out.", "not_supported")
        if body.callback_url is not None:
            self._check_callback(connection, body.callback_url, loaded.spec)
        elif loaded.spec.resumes:
            message = f"The type {body.type} resumes the flow that waits for its result: send its resume address."
            raise Problem("callback_url", message, "callback_url_missing")
        if problem := payload_problem(loaded.spec, body.payload):
            raise Problem(*problem)
        check_files(connection, self.files, body.payload)
        priority = _priority(seen, loaded.spec, body)
        task_id = self._task_id(seen, loaded, body, priority, idempotency_key or body.idempotency_key)
        row = _row(loaded, body, task_id, priority, by, waited) | {"home_pool": self._catalogue.pool(loaded.spec)}
        if loaded.spec.limits.concurrency_key is not None:
            context = _context(seen, loaded.spec, body) | {"task_id": task_id, "priority": priority}
            row["limit_key"] = key_of(loaded.spec, context)
        return row

    def store(
        self,
        tx: Connection,
        items: Sequence[tuple[TaskIn, dict[str, Any]]],
        by: By,
        may_requeue: MayRequeue = lambda _: True,
    ) -> list[Taken]:
        """Write what is new in one go; answer for what existed. Order and length are those of `items`.

        may_requeue: whether the caller may act on a task that exists. Raises Duplicate where an item asks for that.
        """
        if len(items) > 1:
            wait_for_turn(tx, Turn.MANY_TASKS)
        made = self._ledger.create(tx, [row for _, row in items], by) if items else {}
        taken: list[Taken] = []
        for body, row in items:
            task_id = row["task_id"]
            if (internal := made.pop(task_id, None)) is not None:  # the second twin in one call is a duplicate
                if named := [file_id for _, file_id in references(body.payload)]:
                    self.files.use(tx, internal, named)
                taken.append(Taken(task_id, True, internal))
            else:
                taken.append(self._existing(tx, body, row, by, may_requeue))
        return taken

    # -- parts ----------------------------------------------------------------------------------------------------

    def _existing(
        self,
        tx: Connection,
        body: TaskIn,
        row: dict[str, Any],
        by: By,
        may_requeue: MayRequeue,
    ) -> Taken:
        task_id = row["task_id"]
        if body.on_duplicate == "reject":
            raise Duplicate(task_id)
        task = find(tx, task_id)
        if task is None:
            old = retired(tx, task_id)
            assert old is not None  # only archiving removes tasks
            return Taken(task_id, False, archived_status=old["status"])
        stored = tx.execute(select(task_data.c.payload_hash).where(task_data.c.task == task["id"])).scalar_one()
        differs = stored != row["data"]["payload_hash"] or task["type"] != row["type"]
        if differs:
            record(tx, task["id"], "duplicate", by, note="Sent again with another content; nothing was changed.")
        if body.on_duplicate == "requeue" and may_requeue(dict(task)):
            with suppress(IllegalMove):  # neither failed nor cancelled, or not any more: as `return`
                requeue(tx, self._ledger, self._catalogue, task["id"], by, reason="Sent again by its caller.")
        return Taken(task_id, False, task["id"], payload_differs=differs)

    def _check_callback(self, connection: Connection, url: str, spec: TypeSpec) -> None:
        waiting = spec.action.connection if spec.action is not None and spec.resumes else None
        try:
            self._check_url(url, self._catalogue.open_connection(connection, waiting) if waiting else None)
        except Exception as error:
            raise Problem("callback_url", str(error), "address_refused") from error

    def _task_id(self, seen: Seen, loaded: LoadedType, body: TaskIn, priority: str, idempotency_key: str | None) -> str:
        spec = loaded.spec
        field = "task_id"
        try:
            if body.task_id is not None:
                return canonical(body.task_id)
            if spec.task_id is not None:
                context = _context(seen, spec, body) | {"priority": priority}
                return canonical(templating.fill_strict(spec.task_id, context))
            if idempotency_key:
                field = "Idempotency-Key"
                return canonical(idempotency_key)
        except BadTaskId as error:
            raise Problem(field, str(error).replace("task_id", field, 1), "bad_task_id") from error
        except templating.TemplateProblem as error:
            raise Problem(
                "task_id", f"The task ID of this type cannot be made: {error}", "task_id_incomplete"
            ) from error
        # Work that acts outside must be known by an ID of its own.
        acts = spec.action is not None or self._acts_outside(spec)
        if acts if spec.require_id is None else spec.require_id:
            message = "This type needs a task_id, so that the same work is never done twice. Send one."
            raise Problem("task_id", message, "task_id_missing")
        return "t-" + secrets.token_hex(10)


def _priority(seen: Seen, spec: TypeSpec, body: TaskIn) -> str:
    if (given := body.priority or spec.priority) in PRIORITIES:
        return str(given)
    context = _context(seen, spec, body) | {"task_id": body.task_id}
    try:
        return work_out(spec.priority, context)
    except BadPriority as error:
        raise Problem("priority", str(error), "bad_priority") from error


def _context(seen: Seen, spec: TypeSpec, body: TaskIn) -> dict[str, Any]:
    """What a type's templates see of a body."""
    moment = seen.moment
    return {
        "type": spec.name,
        "title": body.title,
        "source": body.source,
        "payload": body.payload,
        "tags": body.tags,
        "callback": {"url": body.callback_url},
        "today": moment.date().isoformat(),
        "now": moment.isoformat(),
    }


def _row(loaded: LoadedType, body: TaskIn, task_id: str, priority: str, by: By, waited: bool) -> dict[str, Any]:
    spec = loaded.spec
    return {
        "task_id": task_id,
        "type": spec.name,
        "type_version": loaded.version,
        "title": body.title or "",
        "priority": PRIORITIES.index(priority),
        "source": body.source,
        "tags": body.tags,
        "callback_url": body.callback_url,
        "requester": by.identity,
        "rank": RANK_FIRST if waited else RANK_USUAL,
        "run_after": body.run_after,
        "ahead": 0.0 if spec.limits.order_by == "age" else ahead(spec, len(dump_json(body.payload).encode())),
        "due_at": body.due_at,
        "deadline_at": body.deadline_at,
        "max_retries": spec.retry.max if body.max_retries is None else body.max_retries,
        "data": {
            "payload": body.payload,
            "payload_hash": payload_hash(body.payload),
            "origin": body.origin.model_dump(exclude_none=True) if body.origin else None,
            "note": body.note,
        },
    }
