"""The ledger of side effects: one row per business action, one row per try."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Column, ForeignKey, Index, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from board.db.schema import BigId, id_field, table_of, text_field, time_field

HAS_TASK = text("task IS NOT NULL")


class Operation(SQLModel, table=True):
    """One business action outside. Outlives its task: the key must never be free for a second time."""

    __tablename__ = "operations"
    __table_args__ = (
        UniqueConstraint("key"),
        # The outbox: rows that wait to be sent, soonest first.
        Index(
            "ix_operations_outbox",
            "next_try_at",
            sqlite_where=text("next_try_at IS NOT NULL"),
            postgresql_where=text("next_try_at IS NOT NULL"),
        ),
        # Not those that outlived their tasks, which are most in the end: counted as one value, they would make SQLite
        # take the index for useless.
        Index("ix_operations_task", "task", "id", sqlite_where=HAS_TASK, postgresql_where=HAS_TASK),
        Index(
            "ix_operations_open",
            "status",
            "id",
            sqlite_where=text("status IN ('sent', 'unknown')"),
            postgresql_where=text("status IN ('sent', 'unknown')"),
        ),
    )

    id: int = id_field()
    key: str = text_field(nullable=False)
    task: int | None = Field(default=None, sa_column=Column(BigId, ForeignKey("tasks.id", ondelete="SET NULL")))
    task_id: str | None = Field(default=None, max_length=200)
    phase: str | None = Field(default=None, max_length=8)
    lease_token: int = Field(default=0, sa_column=Column(BigInteger(), nullable=False))
    kind: str = Field(max_length=40)  # dify.run, webhook.action, webhook.callback
    target: str = text_field(nullable=False)  # shown to people; a secret part of an address is masked
    connection: str | None = Field(default=None, max_length=120)
    url: str | None = text_field()  # outbox rows: where to send
    request_hash: str = Field(max_length=64)
    body: str | None = text_field()  # fixed at reservation, resent byte for byte
    status: str = Field(max_length=12)  # reserved, sent, confirmed, rejected, unknown
    external_reference: str | None = text_field()
    last_error: str | None = text_field()
    tries: int = 0
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


operations = table_of(Operation)
deliveries = table_of(Delivery)
