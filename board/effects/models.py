"""The ledger of side effects: one row per business action, one row per try."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, UniqueConstraint, false, text
from sqlmodel import Field, SQLModel

from board.db.schema import BigId, id_field, json_field, sealed_field, table_of, text_field, time_field

# The conditions of the partial indexes; queries use these very texts, see board.tasks.models.
UNSETTLED = text("operations.status <> 'confirmed'")
OUTSIDE = text("operations.owner IS NOT NULL")
UNKNOWN = text("status = 'unknown' AND NOT harmless")
ANNOUNCED = text("kind = 'outside' AND status IN ('reserved', 'sent')")
HAS_TASK = text("task IS NOT NULL")
IN_TURN = text("next_try_at IS NOT NULL AND after IS NULL")
BEHIND = text("after IS NOT NULL")
SUBSCRIBED = text("subscription IS NOT NULL")


class Operation(SQLModel, table=True):
    """One business action outside. Outlives its task: the key must never be free for a second time."""

    __tablename__ = "operations"
    __table_args__ = (
        UniqueConstraint("key"),
        # The outbox: rows that wait to be sent, each receiver's soonest first.
        Index("ix_operations_outbox", "receiver", "next_try_at", "id", sqlite_where=IN_TURN, postgresql_where=IN_TURN),
        # Rows that wait for an earlier one of their task.
        Index("ix_operations_after", "after", sqlite_where=BEHIND, postgresql_where=BEHIND),
        # Not those that outlived their tasks, which are most in the end: counted as one value, they would make SQLite
        # take the index for useless.
        Index("ix_operations_task", "task", "id", sqlite_where=HAS_TASK, postgresql_where=HAS_TASK),
        # Nearly every row is confirmed in the end: what is not is few, and looked for by its status.
        Index(
            "ix_operations_unsettled",
            "status",
            "id",
            sqlite_where=text("status <> 'confirmed'"),
            postgresql_where=text("status <> 'confirmed'"),
        ),
        # The few that wait for a person's word, counted on every page.
        Index("ix_operations_unknown", "id", sqlite_where=UNKNOWN, postgresql_where=UNKNOWN),
        Index("ix_operations_announced", "id", sqlite_where=ANNOUNCED, postgresql_where=ANNOUNCED),
        # What went to a subscription: its latest result, and what waits.
        Index(
            "ix_operations_subscription",
            "subscription",
            "status",
            "id",
            sqlite_where=SUBSCRIBED,
            postgresql_where=SUBSCRIBED,
        ),
        Index(
            "ix_operations_owner",
            "owner",
            "id",
            sqlite_where=text("owner IS NOT NULL"),
            postgresql_where=text("owner IS NOT NULL"),
        ),
    )

    id: int = id_field()
    key: str = text_field(nullable=False)
    task: int | None = Field(default=None, sa_column=Column(BigId, ForeignKey("tasks.id", ondelete="SET NULL")))
    task_id: str | None = Field(default=None, max_length=200)
    phase: str | None = Field(default=None, max_length=8)
    lease_token: int = Field(default=0, sa_column=Column(BigInteger(), nullable=False))
    owner: str | None = Field(default=None, max_length=200)  # the key of the outside program; None: the board itself
    execution_id: str | None = text_field()  # an outside program's own name of its run
    kind: str = Field(max_length=40)  # dify.run, webhook.action, webhook.callback, webhook.subscription, outside
    target: str = text_field(nullable=False)  # shown to people; a secret part of an address is masked
    connection: str | None = Field(default=None, max_length=120)
    url: str | None = text_field()  # outbox rows: where to send
    receiver: str | None = text_field()  # outbox rows: scheme, host and port; one receiver's trouble is nobody else's
    after: int | None = Field(default=None, sa_column=Column(BigId))  # outbox rows: the one that must be closed before
    subscription: str | None = Field(default=None, max_length=20)  # of word to a subscription, which may be gone by now
    request_hash: str = Field(max_length=64)
    body: str | None = text_field()  # fixed at reservation, resent byte for byte
    status: str = Field(max_length=12)  # reserved, sent, confirmed, rejected, unknown
    external_reference: str | None = text_field()
    last_error: str | None = text_field()
    tries: int = 0
    asks: int = Field(default=0, sa_column_kwargs={"server_default": "0"})  # so often the target was asked how it went
    harmless: bool = Field(default=False, sa_column_kwargs={"server_default": false()})  # may be done twice
    resolution: str | None = Field(default=None, max_length=16)  # a person's last answer: happened, not_happened, drop
    next_try_at: datetime | None = time_field()
    give_up_at: datetime | None = time_field()
    created_at: datetime = time_field(nullable=False)
    sent_at: datetime | None = time_field()
    closed_at: datetime | None = time_field()


class Delivery(SQLModel, table=True):
    """One try of an operation and what came back."""

    __tablename__ = "deliveries"

    id: int = id_field()
    operation: int = Field(
        sa_column=Column(BigId, ForeignKey("operations.id", ondelete="CASCADE"), nullable=False, index=True)
    )
    at: datetime = time_field(nullable=False)
    milliseconds: int
    http_status: int | None = None
    outcome: str = Field(max_length=12)  # confirmed, rejected, unknown, transient
    detail: str | None = text_field()  # the answer's first part, or why there was none


class Untold(SQLModel, table=True):
    """A note: the caller of a task is to be told of its event `seq`. Written out as an operation at once, mostly.

    Written with every end that somebody is told of, so it is as narrow as can be. No foreign key, whose check would
    cost more than the row: only the archive removes tasks, and it leaves those with a note alone.
    """

    __tablename__ = "untold"

    task: int = Field(sa_column=Column(BigId, primary_key=True, autoincrement=False))
    seq: int = Field(sa_column=Column(Integer(), primary_key=True, autoincrement=False))
    due_at: datetime | None = time_field()  # not before; None: at once


class Subscription(SQLModel, table=True):
    """A receiver that hears of events of all tasks, or of those of some types."""

    __tablename__ = "subscriptions"
    __table_args__ = (UniqueConstraint("fingerprint"),)

    id: str = Field(primary_key=True, max_length=20)  # never given out twice: the ids of what is sent are made of it
    fingerprint: str = Field(max_length=64)  # of address and events, by which a repeated wish is told
    url: str = text_field(nullable=False)
    events: list[str] = json_field(nullable=False)
    types: list[str] | None = json_field()  # None: all
    secret: str = sealed_field()  # empty: signed with the board's own
    owner: str = Field(max_length=200)
    created_at: datetime = time_field(nullable=False)
    disabled_at: datetime | None = time_field()
    note: str | None = text_field()  # why it was switched off


class Announcement(SQLModel, table=True):
    """An event that subscriptions are to hear of; written out for each of them at once, mostly, and then removed."""

    __tablename__ = "announcements"

    id: int = id_field()
    event: str = Field(max_length=40)
    type: str | None = Field(default=None, max_length=120)  # of its task
    task: int | None = Field(default=None, sa_column=Column(BigId, index=True))
    task_id: str | None = Field(default=None, max_length=200)
    name: str = text_field(nullable=False)  # what tells it from every other one of its event
    body: str | None = text_field()  # None: the task as it is when this is written out
    at: datetime = time_field(nullable=False)
    due_at: datetime = time_field(nullable=False)  # nothing leaves before


class OperationEvent(SQLModel, table=True):
    """What became known of an operation beside its tries: who announced, asked, refused or answered what."""

    __tablename__ = "operation_events"
    __table_args__ = (Index("ix_operation_events_operation", "operation", "id"),)

    id: int = id_field()
    operation: int = Field(sa_column=Column(BigId, ForeignKey("operations.id", ondelete="CASCADE"), nullable=False))
    at: datetime = time_field(nullable=False)
    kind: str = Field(
        max_length=20
    )  # reserved, sent, confirmed, rejected, unknown, asked, refused, resolved, withdrawn
    actor_kind: str = Field(max_length=16)
    actor_name: str = Field(max_length=200)
    channel: str = Field(max_length=16)
    note: str | None = text_field()
    data: dict[str, Any] | None = json_field()


class CallbackRight(SQLModel, table=True):
    """The right of one attempt to be called back once, and what came by it.

    Whoever knows the token has the right; the token itself is kept nowhere.
    """

    __tablename__ = "callback_rights"
    __table_args__ = (UniqueConstraint("token_hash"), Index("ix_callback_rights_task", "task", "id"))

    id: int = id_field()
    token_hash: str = Field(max_length=64)
    task: int = Field(sa_column=Column(BigId, ForeignKey("tasks.id", ondelete="CASCADE"), nullable=False))
    attempt: int = Field(sa_column=Column(BigInteger(), nullable=False))  # the lease token
    created_at: datetime = time_field(nullable=False)
    answer: dict[str, Any] | None = json_field()  # the body as it came; None: nothing final came yet
    answered_at: datetime | None = time_field()
    closed_at: datetime | None = time_field()  # from here on a call is too late
    late_at: datetime | None = time_field()  # the first that was; the history has noted it


class OperationWait(SQLModel, table=True):
    """A task that waits until another one's call under the same key is closed. attempt: its lease token then; a later
    attempt does not wait any more."""

    __tablename__ = "operation_waits"
    __table_args__ = (Index("ix_operation_waits_operation", "operation"),)

    task: int = Field(sa_column=Column(BigId, ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=True))
    attempt: int = Field(sa_column=Column(BigInteger(), nullable=False))
    operation: int = Field(sa_column=Column(BigId, ForeignKey("operations.id", ondelete="CASCADE"), nullable=False))


class Withdrawal(SQLModel, table=True):
    """A call whose task was cancelled while it was out: whoever was called is still to be told. Mostly empty."""

    __tablename__ = "withdrawals"

    operation: int = Field(sa_column=Column(BigId, ForeignKey("operations.id", ondelete="CASCADE"), primary_key=True))
    tries: int = 0
    next_try_at: datetime = time_field(nullable=False)


class Breaker(SQLModel, table=True):
    """A connection whose calls fail, one after the other; there is no row for one that works.

    until: nothing is begun through it before; None: it has not failed often enough for that. shuts: how often it was
    shut since it last worked.
    """

    __tablename__ = "breakers"

    connection: str = Field(primary_key=True, max_length=120)
    failures: int
    shuts: int = 0
    since: datetime = time_field(nullable=False)
    until: datetime | None = time_field()
    trouble: str = text_field(nullable=False)  # of the last failure


breakers = table_of(Breaker)
operations = table_of(Operation)
deliveries = table_of(Delivery)
operation_events = table_of(OperationEvent)
callback_rights = table_of(CallbackRight)
operation_waits = table_of(OperationWait)
withdrawals = table_of(Withdrawal)
untold = table_of(Untold)
subscriptions = table_of(Subscription)
announcements = table_of(Announcement)
