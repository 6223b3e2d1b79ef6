"""Schedules as people see and change them: checked when they are made, like the task that they will put in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from board import templating
from board.catalogue.fields import NAME
from board.db.clock import now, read_now
from board.db.engine import Database
from board.db.insert import insert_once
from board.db.pages import Key, Page, after, page
from board.queue.models import changes
from board.tasks.bodies import TaskIn
from board.tasks.history import By
from board.tasks.ids import BadTaskId, canonical
from board.tasks.intake import Intake, Problem
from board.tasks.view import time
from board.upkeep.cron import BadCron, Cron
from board.upkeep.models import firings, schedules

CatchUp = Literal["skip", "one", "all"]
DEFAULT_ID = "schedule:{{ schedule }}:{{ due_at }}"
LAST_FIRINGS = 20  # shown with a schedule; enough to see a day's pattern
# One moment for all firings makes no sense, and a key given by the caller neither.
_NOT_HERE = ("run_after", "due_at", "deadline_at", "idempotency_key")


def _named(name: str) -> str:
    if not NAME.match(name):
        raise ValueError("use 1 to 120 letters, digits and . _ -, beginning with a letter or digit")
    return name


class ScheduleIn(BaseModel):
    """A new schedule. zone left out: that of the board. task: the body of POST /tasks; its task_id is a template."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, AfterValidator(_named)]
    cron: Annotated[str, Field(max_length=120)]
    zone: Annotated[str, Field(max_length=64)] | None = None
    catch_up: CatchUp = "one"
    task: TaskIn
    paused: bool = False


class ScheduleEdit(BaseModel):
    """What is given is changed. version: the one that was read."""

    model_config = ConfigDict(extra="forbid")

    version: int
    cron: Annotated[str, Field(max_length=120)] | None = None
    zone: Annotated[str, Field(max_length=64)] | None = None
    catch_up: CatchUp | None = None
    task: TaskIn | None = None
    paused: bool | None = None


class ScheduleRefused(Exception):
    """code: not_found, schedule_exists or stale_version; the text is fit for a person."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Schedules:
    db: Database
    intake: Intake
    zone: str  # where a schedule names none

    def create(self, body: ScheduleIn, by: By) -> RowMapping:
        """The new row. Raises Problem naming the field, ScheduleRefused where the name is taken."""
        zone = body.zone or self.zone
        stored = _stored(body.task)
        cron = self._check(body.name, body.cron, zone, stored, by)
        with self.db.write() as tx:
            row = {
                "name": body.name,
                "cron": body.cron,
                "zone": zone,
                "catch_up": body.catch_up,
                "body": stored,
                "paused": body.paused,
                "version": 1,
                "next_at": None if body.paused else cron.next(read_now(tx)),
                "changed_at": now(),
                "changed_by": by.identity,
            }
            made = insert_once(tx, schedules, "name", row)
            if made is None:
                message = f"The schedule “{body.name}” exists already; change it with PATCH, or choose another name."
                raise ScheduleRefused("schedule_exists", message)
            _keep(tx, by, body.name, None, made)
        return made

    def edit(self, name: str, body: ScheduleEdit, by: By) -> RowMapping:
        """The changed row. From now on only its new times count. Raises Problem, ScheduleRefused."""
        with self.db.read() as connection:
            row = one(connection, name)
        given = body.model_dump(exclude_none=True, exclude={"version", "task"})
        if body.task is not None:
            given["body"] = _stored(body.task)
        after_it = dict(row) | given
        cron = self._check(name, after_it["cron"], after_it["zone"], after_it["body"], by)
        with self.db.write() as tx:
            if {"cron", "zone", "paused"} & given.keys():
                given["next_at"] = None if after_it["paused"] else cron.next(read_now(tx))
            changed = (
                tx.execute(
                    update(schedules)
                    .where(schedules.c.id == row["id"], schedules.c.version == body.version)
                    .values(version=body.version + 1, changed_at=now(), changed_by=by.identity, **given)
                    .returning(schedules)
                )
                .mappings()
                .one_or_none()
            )
            if changed is None or row["version"] != body.version:
                message = "This schedule has changed meanwhile. Read it again, then repeat the change."
                raise ScheduleRefused("stale_version", message)
            _keep(tx, by, name, row, changed)
        return changed

    def remove(self, name: str, by: By) -> None:
        """It fires no more. What it has fired stays on record, so that a new one of its name repeats nothing."""
        with self.db.write() as tx:
            row = one(tx, name)
            tx.execute(delete(schedules).where(schedules.c.id == row["id"]))
            _keep(tx, by, name, row, None)

    def _check(self, name: str, cron: str, zone: str, body: dict[str, Any], by: By) -> Cron:
        """Everything that could go wrong at a firing goes wrong now. Raises Problem."""
        try:
            found = Cron(cron, zone)
        except BadCron as error:
            raise Problem(error.field, str(error)) from error
        with self.db.read() as connection:
            if found.next(read_now(connection)) is None:
                raise Problem("cron", f"“{cron}” never comes; choose a day that exists.")
            ids = [filled_id(name, body, due) for due in _TRIAL]
            if ids[0] == ids[1]:
                message = "every firing would have the same task_id and be taken as a duplicate; use {{ due_at }} in it"
                raise Problem("task.task_id", f"task.task_id: {message}.")
            try:
                self.intake.prepare(connection, task_of(name, body, _TRIAL[0]), by)
            except Problem as error:
                field = f"task.{error.field}"
                raise Problem(field, f"{field}: {str(error).removeprefix(f'{error.field}: ')}", error.code) from error
        return found


# Any two moments that differ in everything a template may use.
_TRIAL = (datetime(2026, 1, 5, 6, 7, tzinfo=UTC), datetime(2027, 12, 28, 19, 48, tzinfo=UTC))


def one(connection: Connection, name: str) -> RowMapping:
    """Raises ScheduleRefused where there is none of this name."""
    row = connection.execute(select(schedules).where(schedules.c.name == name)).mappings().one_or_none()
    if row is None:
        raise ScheduleRefused("not_found", f"There is no schedule “{name}”.")
    return row


def listed(connection: Connection, cursor: str | None, limit: int) -> Page:
    """Schedules by name."""
    keys = [Key(schedules.c.name, "name")]
    return page(connection.execute(after(select(schedules), keys, cursor, limit)).mappings().all(), keys, limit)


def last_firings(connection: Connection, name: str) -> list[RowMapping]:
    """What it has fired, the newest due time first."""
    query = select(firings).where(firings.c.schedule == name).order_by(firings.c.due_at.desc()).limit(LAST_FIRINGS)
    return list(connection.execute(query).mappings())


def shown(row: RowMapping) -> dict[str, Any]:
    """A schedule as it stands on the wire."""
    return {
        **{key: row[key] for key in ("name", "cron", "zone", "catch_up", "paused", "version", "changed_by")},
        "task": row["body"],
        "next_at": time(row["next_at"]),
        "changed_at": time(row["changed_at"]),
    }


def shown_firing(row: RowMapping) -> dict[str, Any]:
    """One due time and what came of it."""
    times = {key: time(row[key]) for key in ("due_at", "fired_at")}
    return {**times, "task_id": row["task_id"], "note": row["note"]}


def filled_id(name: str, body: dict[str, Any], due: datetime) -> str:
    """The ID of the task of a due time. Raises Problem."""
    written = written_time(due)
    try:
        template = body.get("task_id") or DEFAULT_ID
        return canonical(templating.fill_strict(template, {"schedule": name, "due_at": written, "today": written[:10]}))
    except (templating.TemplateProblem, BadTaskId) as error:
        raise Problem("task.task_id", f"task.task_id: {str(error).removeprefix('task_id ')}", "bad_task_id") from error


def task_of(name: str, body: dict[str, Any], due: datetime) -> TaskIn:
    """The body that a due time puts in. It names its schedule as origin, unless it names another."""
    origin = {"system": "schedule", "workflow_id": name, "execution_id": written_time(due)}
    return TaskIn.model_validate({"origin": origin} | body | {"task_id": filled_id(name, body, due)})


def written_time(due: datetime) -> str:
    return due.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _stored(task: TaskIn) -> dict[str, Any]:
    for name in _NOT_HERE:
        if getattr(task, name) is not None:
            raise Problem(f"task.{name}", f"task.{name} cannot stand in a schedule; leave it out.", "not_supported")
    return task.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _keep(tx: Connection, by: By, name: str, before: RowMapping | None, then: RowMapping | None) -> None:
    """Who changed what, in the same transaction."""

    def kept(row: RowMapping | None) -> dict[str, Any] | None:
        keys = ("cron", "zone", "catch_up", "body", "paused", "version")
        return None if row is None else {key: row[key] for key in keys}

    values = {"what": f"schedule:{name}"[:120], "before": kept(before), "after": kept(then)}
    tx.execute(insert(changes).values(at=now(), actor=by.identity, **values))
