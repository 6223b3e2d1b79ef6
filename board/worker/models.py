"""Who is at work."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, ForeignKey, Index, UniqueConstraint
from sqlmodel import Field, SQLModel

from board.db.schema import BigId, id_field, json_field, table_of, time_field


class Worker(SQLModel, table=True):
    """One process that takes work. A row that was not seen for a while is a worker that is gone."""

    __tablename__ = "workers"

    name: str = Field(primary_key=True, max_length=200)
    host: str = Field(max_length=200)
    version: str = Field(max_length=40)
    slots: int
    running: int = 0
    narrow: dict[str, Any] | None = json_field()  # only these types and lanes
    handlers: list[str] | None = json_field()  # that are installed in it
    pace: list[float] | None = json_field()  # tasks of P0 to P3 that it began per minute, lately
    started_at: datetime = time_field(nullable=False)
    seen_at: datetime = time_field(nullable=False)
    claimed_at: datetime | None = time_field()
    stopped_at: datetime | None = time_field()


class Claim(SQLModel, table=True):
    """One task in the hands of an outside worker: whose claim it is, and how it was ended."""

    __tablename__ = "claims"
    __table_args__ = (
        UniqueConstraint("task", "number"),
        Index("ix_claims_type", "type", "made_at"),  # whether anybody works on a type
        {"sqlite_autoincrement": True},  # an id is never given twice: outside workers know their claims by it
    )

    id: int = id_field()
    task: int = Field(
        sa_column=Column(BigId, ForeignKey("tasks.id", ondelete="CASCADE"), nullable=False, autoincrement=False)
    )
    number: int = Field(sa_column=Column(BigInteger(), nullable=False))  # the lease token
    type: str = Field(max_length=120)  # of the task, which never changes
    owner: str = Field(max_length=200)  # `key:NAME`
    worker: str = Field(max_length=200)  # what the program calls itself
    lease: float  # seconds that a heartbeat adds
    made_at: datetime = time_field(nullable=False)
    settled_by: str | None = Field(default=None, max_length=12)  # completed, failed or released
    content_hash: str | None = Field(default=None, max_length=64)  # of that call, so that a repeat is known


workers = table_of(Worker)
claims = table_of(Claim)
