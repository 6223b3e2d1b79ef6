"""The one way in: a body becomes a task, or the task that exists, or a refusal that names the field."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from jsonschema import Draft202012Validator
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field
from sqlalchemy import Connection, select

from board import templating
from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue, LoadedType, UnknownType
from board.db.clock import now, read_now
from board.db.types import dump_json
from board.tasks.history import By, record
from board.tasks.ids import BadTaskId, canonical
from board.tasks.ledger import Ledger, find, retired
from board.tasks.models import task_data
from board.tasks.states import IllegalMove, Move, Status

Text = Annotated[str, Field(max_length=1000)]
Tag = Annotated[str, Field(min_length=1, max_length=100)]


class Problem(Exception):
    """The body cannot become a task. field: its path; code: the contract's."""

    def __init__(self, field: str, message: str, code: str = "invalid_field") -> None:
        super().__init__(message)
        self.field, self.code = field, code


class Duplicate(Exception):
    """`on_duplicate: reject` and the task exists."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"Task “{task_id}” exists already.")
        self.task_id = task_id


class Origin(BaseModel):
    """Where the caller's own execution can be found."""

    model_config = ConfigDict(extra="forbid")

    system: Text | None = None
    workflow_id: Text | None = None
    execution_id: Text | None = None
    url: Text | None = None


def _http(value: str | None) -> str | None:
    if value is not None and not re.match(r"^https?://[^/\s]+", value):
        raise ValueError("must start with http:// or https://")
    return value


class TaskIn(BaseModel):
    """The body of POST /tasks. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    type: str
    task_id: str | None = None
    title: Text | None = None
    priority: Literal["P0", "P1", "P2", "P3"] | None = None
    payload: dict[str, Any] = {}
    source: Text | None = None
    origin: Origin | None = None
    callback_url: Annotated[str, Field(max_length=4000), AfterValidator(_http)] | None = None
    run_after: AwareDatetime | None = None
    due_at: AwareDatetime | None = None
    max_retries: int | None = Field(default=None, ge=0, le=100)
    tags: list[Tag] = Field(default=[], max_length=50)
    note: Annotated[str, Field(max_length=10_000)] | None = None
    on_duplicate: Literal["return", "requeue", "reject"] = "return"
    idempotency_key: str | None = Field(default=None, alias="Idempotency-Key")
    deadline_at: Any = None
    needs: Any = None
    fields: Any = None


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a body. archived: only the ID and last status are left of the task."""

    task_id: str
    created: bool
    payload_differs: bool = False
    archived_status: str | None = None


class Intake:
    """check_url refuses a callback address that may not be called (board.effects.guard)."""

    def __init__(self, ledger: Ledger, catalogue: Catalogue, check_url: Callable[[str], None]) -> None:
        self._ledger = ledger
        self._catalogue = catalogue
        self._check_url = check_url

    def take(self, tx: Connection, body: TaskIn, by: By, idempotency_key: str | None = None) -> Taken:
        """Make the task, or find the one that has its ID. Raises Problem, Duplicate."""
        prepared = self.prepare(tx, body, by, idempotency_key)
        return self.store(tx, [(body, prepared)], by)[0]

    def prepare(self, tx: Connection, body: TaskIn, by: By, idempotency_key: str | None = None) -> dict[str, Any]:
        """The body checked against its type and turned into a row. Nothing is written. Raises Problem."""
        try:
            loaded = self._catalogue.current(tx, body.type)
        except UnknownType as error:
            raise Problem("type", str(error), "unknown_type") from error
        for name in ("deadline_at", "needs", "fields"):
            if getattr(body, name) not in (None, [], {}):
                raise Problem(name, f"{name} is not yet supported; leave it out.", "not_supported")
        if body.callback_url is not None:
            self._check_callback(body.callback_url)
        self._check_payload(loaded.spec, body.payload)
        task_id = self._task_id(tx, loaded, body, idempotency_key or body.idempotency_key)
        return self._row(loaded, body, task_id, by)

    def store(self, tx: Connection, items: Sequence[tuple[TaskIn, dict[str, Any]]], by: By) -> list[Taken]:
        """Write what is new in one go; answer for what existed. Order and length are those of `items`."""
        gone = {row["task_id"]: retired(tx, row["task_id"]) for _, row in items}
        new = [row for _, row in items if gone[row["task_id"]] is None]
        made = self._ledger.create(tx, new, by) if new else {}
        taken: list[Taken] = []
        for body, row in items:
            task_id = row["task_id"]
            if (old := gone[task_id]) is not None:
                taken.append(Taken(task_id, False, archived_status=old["status"]))
            elif made.pop(task_id, None) is not None:  # the second twin in one call is a duplicate
                taken.append(Taken(task_id, True))
            else:
                taken.append(self._existing(tx, body, row, by))
        return taken

    # -- parts ----------------------------------------------------------------------------------------------------

    def _existing(self, tx: Connection, body: TaskIn, row: dict[str, Any], by: By) -> Taken:
        task_id = row["task_id"]
        if body.on_duplicate == "reject":
            raise Duplicate(task_id)
        task = find(tx, task_id)
        assert task is not None
        stored = tx.execute(select(task_data.c.payload_hash).where(task_data.c.task == task["id"])).scalar_one()
        differs = stored != row["data"]["payload_hash"] or task["type"] != row["type"]
        if differs:
            record(tx, task["id"], "duplicate", by, note="Sent again with another content; nothing was changed.")
        if body.on_duplicate == "requeue" and task["status"] in (Status.FAILED, Status.CANCELLED):
            requeue(tx, self._ledger, self._catalogue, task["id"], by, reason="Sent again with on_duplicate: requeue.")
        return Taken(task_id, False, payload_differs=differs)

    def _check_callback(self, url: str) -> None:
        try:
            self._check_url(url)
        except Exception as error:
            raise Problem("callback_url", str(error), "address_refused") from error

    @staticmethod
    def _check_payload(spec: TypeSpec, payload: dict[str, Any]) -> None:
        if problem := payload_problem(spec, payload):
            raise Problem(*problem)

    @staticmethod
    def _task_id(tx: Connection, loaded: LoadedType, body: TaskIn, idempotency_key: str | None) -> str:
        spec = loaded.spec
        try:
            if body.task_id is not None:
                return canonical(body.task_id)
            if spec.task_id is not None:
                moment = read_now(tx)
                context = {
                    "type": spec.name,
                    "title": body.title,
                    "source": body.source,
                    "payload": body.payload,
                    "tags": body.tags,
                    "priority": body.priority or spec.priority,
                    "today": moment.date().isoformat(),
                    "now": moment.isoformat(),
                }
                return canonical(templating.fill_strict(spec.task_id, context))
            if idempotency_key:
                return canonical(idempotency_key)
        except BadTaskId as error:
            raise Problem("task_id", str(error), "bad_task_id") from error
        except templating.TemplateProblem as error:
            raise Problem(
                "task_id", f"The task ID of this type cannot be made: {error}", "task_id_incomplete"
            ) from error
        if needs_id(spec):
            message = "This type needs a task_id, so that the same work is never done twice. Send one."
            raise Problem("task_id", message, "task_id_missing")
        return "t-" + secrets.token_hex(10)

    @staticmethod
    def _row(loaded: LoadedType, body: TaskIn, task_id: str, by: By) -> dict[str, Any]:
        spec = loaded.spec
        priority = int(str(body.priority or spec.priority)[1])
        return {
            "task_id": task_id,
            "type": spec.name,
            "type_version": loaded.version,
            "title": body.title or "",
            "priority": priority,
            "source": body.source,
            "tags": body.tags,
            "callback_url": body.callback_url,
            "requester": by.identity,
            "run_after": body.run_after,
            "due_at": body.due_at,
            "max_retries": spec.retry.max if body.max_retries is None else body.max_retries,
            "data": {
                "payload": body.payload,
                "payload_hash": payload_hash(body.payload),
                "origin": body.origin.model_dump(exclude_none=True) if body.origin else None,
                "note": body.note,
            },
        }


def payload_problem(spec: TypeSpec, payload: dict[str, Any]) -> tuple[str, str, str] | None:
    """(field, message, code) of the first thing that does not fit the type's schema."""
    if spec.payload_schema is None:
        return None
    found = next(Draft202012Validator(spec.payload_schema).iter_errors(payload), None)
    if found is None:
        return None
    path = "payload" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in found.absolute_path)
    return path, f"{path}: {found.message[:300]}", "payload_invalid"


def payload_hash(payload: dict[str, Any]) -> str:
    """Equal for equal content, whatever the order of keys."""
    return hashlib.sha256(dump_json(_sorted(payload)).encode()).hexdigest()


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def needs_id(spec: TypeSpec) -> bool:
    """Work that acts outside must be known by an ID of its own."""
    if spec.require_id is not None:
        return spec.require_id
    return spec.action is not None or bool(spec.handler.side_effects)


def requeue(
    tx: Connection,
    ledger: Ledger,
    catalogue: Catalogue,
    task: int,
    by: By,
    *,
    reason: str | None = None,
    from_work: bool = False,
    type_version: Literal["current", "original"] = "current",
) -> None:
    """Put a failed or cancelled task back with a fresh retry budget. Raises IllegalMove elsewhere."""
    row = ledger.lock(tx, task)
    if Status(row["status"]) not in (Status.FAILED, Status.CANCELLED):
        raise IllegalMove(Move.REQUEUE, Status(row["status"]), row["phase"])
    loaded = catalogue.current(tx, row["type"])
    version = loaded.version if type_version == "current" else row["type_version"]
    changes: dict[str, Any] = {
        "ready_at": now(),
        "retry_count": 0,
        "crash_count": 0,
        "suspect": False,
        "cancel_requested": False,
        "type_version": version,
        "lane": row["priority"],
        "lane_since": now(),
        "has_action": row["phase"] == "act" and not from_work,
    }
    ledger.move(tx, row, Move.REQUEUE_WORK if from_work else Move.REQUEUE, by, changes=changes, note=reason)
