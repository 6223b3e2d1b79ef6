"""The task's tables: `tasks` is hot and narrow, `task_data` holds what is long, `task_events` is only added to."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, SmallInteger, UniqueConstraint, false, text
from sqlmodel import Field, SQLModel

from board.db.schema import BigId, id_field, json_field, table_of, text_field, time_field

# The conditions of the partial indexes. Queries use these very texts: with bound parameters neither database can prove
# that a partial index fits. What waits is in line (READY), or is held out of it by a limit (HELD).
WAITING = text("status IN ('pending', 'retrying')")
# Of keys only, which puts it more narrowly than READY does: else a claim would be found through the index of this, and
# read all that waits where a lane is empty.
WAITING_OF_KEYS = text("status IN ('pending', 'retrying') AND requester >= 'key:' AND requester < 'key;'")
READY = text("status IN ('pending', 'retrying') AND held_by IS NULL")
HELD = text("held_by IS NOT NULL")  # without the status: SQLite would take an index that begins with it
LET_IN = text("let_in IS NOT NULL")
RUNNING = text("status = 'running'")
FAILED = text("status = 'failed'")
SUSPECT = text("suspect")
HURRIES = text("hurry_at IS NOT NULL")
DEADLINE_OPEN = text(
    "deadline_at IS NOT NULL AND NOT deadline_missed AND status IN ('pending', 'running', 'needs_review', 'retrying')"
)
IN_GRACE = text("status = 'pending' AND phase = 'act'")


# Columns that came later need a value for the rows that were there; the database keeps it.
_ADDED_BOARD = {"server_default": "board"}


def _task_key(*, primary: bool = False) -> Any:
    return Field(
        sa_column=Column(
            BigId, ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=primary, nullable=False, autoincrement=False
        )
    )


class Task(SQLModel, table=True):
    """One piece of work. `status` and `phase` change only through board.tasks.ledger."""

    __tablename__ = "tasks"
    __table_args__ = (
        # Ready work, in the order it is claimed. Partial: a million finished tasks cost it nothing.
        Index("ix_tasks_ready", "pool", "lane", "rank", "ready_at", "id", sqlite_where=READY, postgresql_where=READY),
        # What limits hold back, in the order in which it is let in; and what was let in and not claimed yet.
        Index("ix_tasks_held", "held_by", "lane", "rank", "ready_at", "id", sqlite_where=HELD, postgresql_where=HELD),
        Index("ix_tasks_let_in", "let_in", sqlite_where=LET_IN, postgresql_where=LET_IN),
        # What of a key's tasks waits, where a bound is set on it.
        Index("ix_tasks_waiting_of", "requester", sqlite_where=WAITING_OF_KEYS, postgresql_where=WAITING_OF_KEYS),
        # Leases that may have run out.
        Index("ix_tasks_leases", "lease_until", sqlite_where=RUNNING, postgresql_where=RUNNING),
        # Suspects are few and looked for at every claim.
        Index("ix_tasks_suspects", "ready_at", sqlite_where=SUSPECT, postgresql_where=SUSPECT),
        # Approved tasks in their grace time.
        Index("ix_tasks_grace", "ready_at", sqlite_where=IN_GRACE, postgresql_where=IN_GRACE),
        Index("ix_tasks_hurry", "hurry_at", sqlite_where=HURRIES, postgresql_where=HURRIES),
        Index("ix_tasks_deadline", "deadline_at", sqlite_where=DEADLINE_OPEN, postgresql_where=DEADLINE_OPEN),
        # Those that failed lately, for the alerts and the daily digest.
        Index("ix_tasks_failed", "finished_at", sqlite_where=FAILED, postgresql_where=FAILED),
        Index("ix_tasks_type_status", "type", "status", "id"),
        Index("ix_tasks_status_created", "status", "created_at", "id"),
        Index("ix_tasks_created", "created_at", "id"),
        Index("ix_tasks_updated", "updated_at", "id"),
        {"sqlite_autoincrement": True},  # an id is never given twice: outside systems know attempts by it
    )

    id: int = id_field()
    task_id: str = Field(max_length=200, unique=True)
    type: str = Field(max_length=120)
    type_version: int
    status: str = Field(max_length=16)
    phase: str = Field(default="work", max_length=8)
    has_action: bool = False  # an `act` is left to do; a pending(act) without it only waits for its grace time
    priority: int = 2
    pool: str = Field(
        max_length=12, sa_column_kwargs=_ADDED_BOARD
    )  # who may claim it now: a POOL of board.tasks.states
    home_pool: str = Field(
        max_length=12, sa_column_kwargs=_ADDED_BOARD
    )  # who may claim its work; its action is always the board's own
    lane: int = 2
    rank: int = Field(
        default=1, sa_column=Column(SmallInteger(), nullable=False, server_default="1")
    )  # in a lane: 0 before 1
    lane_since: datetime = time_field(nullable=False)
    ready_at: datetime = time_field(nullable=False)
    unmet_needs: int = 0
    limit_key: str | None = Field(default=None, max_length=32)  # a hash; none: no limit per key holds for it
    held_by: str | None = Field(default=None, max_length=160)  # while it waits: the limit that keeps it out of line
    let_in: str | None = Field(default=None, max_length=160)  # until its next move: the limit that let it back in line
    lease_owner: str | None = None
    lease_token: int = Field(default=0, sa_column=Column(BigInteger(), nullable=False))
    lease_until: datetime | None = time_field()
    cancel_requested: bool = False
    retry_count: int = 0
    crash_count: int = 0
    # It is being found out what became of a call: the next attempt asks before it sends anything.
    reconciling: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    suspect: bool = False  # one more death of its worker would fail it: it runs alone, so that no neighbour is blamed
    max_retries: int = 2
    last_error: str | None = text_field()
    error_class: str | None = Field(default=None, max_length=16)
    error_cause: str | None = Field(default=None, max_length=32)
    round: int = 1
    version: int = 1
    event_seq: int = 0
    title: str = text_field(nullable=False, default="")
    source: str | None = text_field()
    tags: list[str] = json_field(nullable=False)
    callback_url: str | None = text_field()
    requester: str = Field(max_length=200)  # "key:NAME" or "user:EMAIL": who put it in
    assignee: str | None = Field(default=None, max_length=200)
    run_after: datetime | None = time_field()
    due_at: datetime | None = time_field()
    deadline_at: datetime | None = time_field()
    hurry_at: datetime | None = time_field()  # a tenth of the time to the deadline is left from here on; none: past
    deadline_missed: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    created_at: datetime = time_field(nullable=False)
    started_at: datetime | None = time_field()
    finished_at: datetime | None = time_field()
    updated_at: datetime = time_field(nullable=False)
    acknowledged_at: datetime | None = time_field()  # a person has seen that it failed: it may be archived


class TaskData(SQLModel, table=True):
    """The long part of a task, read one task at a time."""

    __tablename__ = "task_data"

    task: int = _task_key(primary=True)
    payload: dict[str, Any] = json_field(nullable=False)
    payload_hash: str = Field(max_length=64)
    origin: dict[str, Any] | None = json_field()
    note: str | None = text_field()
    result: Any = json_field()
    judgement: dict[str, Any] | None = json_field()
    instruction: str | None = text_field()  # the reviewer's last "revise", for the next round
    former_output: Any = json_field()  # the output that it was about
    decision: dict[str, Any] | None = json_field()  # the last person's decision, for the action and the callback


class TaskEvent(SQLModel, table=True):
    """One thing that happened to a task. `seq` grows by one per task, so a receiver can tell old from new."""

    __tablename__ = "task_events"
    __table_args__ = (UniqueConstraint("task", "seq"), Index("ix_task_events_at", "at", "id"))

    id: int = id_field()
    task: int = _task_key()
    seq: int
    at: datetime = time_field(nullable=False)
    kind: str = Field(max_length=40)
    from_status: str | None = Field(default=None, max_length=16)
    to_status: str | None = Field(default=None, max_length=16)
    actor_kind: str = Field(max_length=16)
    actor_name: str = Field(max_length=200)
    channel: str = Field(max_length=16)
    attempt: int | None = Field(default=None, sa_column=Column(BigInteger()))
    note: str | None = text_field()
    data: dict[str, Any] | None = json_field()


class Attempt(SQLModel, table=True):
    """One claim of a task and what came of it."""

    __tablename__ = "attempts"
    __table_args__ = (UniqueConstraint("task", "number"),)

    id: int = id_field()
    task: int = _task_key()
    number: int = Field(sa_column=Column(BigInteger(), nullable=False))  # the lease token
    phase: str = Field(max_length=8)
    round: int = Field(default=1, sa_column=Column(Integer(), nullable=False))
    worker: str = Field(max_length=200)
    type_version: int
    started_at: datetime = time_field(nullable=False)
    finished_at: datetime | None = time_field()
    outcome: str | None = Field(default=None, max_length=20)
    error_class: str | None = Field(default=None, max_length=16)
    error_cause: str | None = Field(default=None, max_length=32)
    error: str | None = text_field()
    rule: str | None = Field(default=None, max_length=80)
    instruction: str | None = text_field()
    output: Any = json_field()
    raw_text: str | None = text_field()
    tokens: int | None = Field(default=None, sa_column=Column(BigInteger()))
    cost: str | None = Field(default=None, max_length=40)
    reference: str | None = text_field()
    progress: dict[str, Any] | None = json_field()  # the last that an outside worker said: percent, message, text, at


class RetiredId(SQLModel, table=True):
    """The unique ID and last status of a task that was archived: removing a task never re-opens its ID."""

    __tablename__ = "retired_ids"

    task_id: str = Field(primary_key=True, max_length=200)
    status: str = Field(max_length=16)
    retired_at: datetime = time_field(nullable=False)


tasks = table_of(Task)
task_data = table_of(TaskData)
task_events = table_of(TaskEvent)
attempts = table_of(Attempt)
retired_ids = table_of(RetiredId)
