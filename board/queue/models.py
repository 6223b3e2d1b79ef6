"""Settings of the queue that change while it runs, who changed what, and what limits have used up."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, Index
from sqlmodel import Field, SQLModel

from board.db.schema import id_field, json_field, table_of, text_field, time_field


class LiveSetting(SQLModel, table=True):
    """One setting that every process reads again every few seconds: weights, windows, pauses."""

    __tablename__ = "live_settings"

    key: str = Field(primary_key=True, max_length=80)
    value: Any = json_field(nullable=False)
    changed_at: datetime = time_field(nullable=False)
    changed_by: str = Field(max_length=200)


class Change(SQLModel, table=True):
    """The history of what people change besides tasks."""

    __tablename__ = "changes"
    __table_args__ = (Index("ix_changes_what", "what", "id"),)

    id: int = id_field()
    at: datetime = time_field(nullable=False)
    actor: str = Field(max_length=200)
    what: str = Field(max_length=120)
    before: Any = json_field()
    after: Any = json_field()
    note: str | None = text_field()


class Limit(SQLModel, table=True):
    """What one limit has used up. Whoever claims under it locks the row, so that claimers count one after another.

    scope: `type:NAME`, `connection:NAME`, `intake:key:NAME`, `tokens:NAME` (a type's tokens of models). Rate: `tokens`
    were left at `refilled_at`. Day: `used` on `day` (YYYY-MM-DD in the board's zone).
    """

    __tablename__ = "limits"

    scope: str = Field(primary_key=True, max_length=160)
    tokens: float | None = None
    refilled_at: datetime | None = time_field()
    day: str | None = Field(default=None, max_length=10)
    used: int = 0


class Spending(SQLModel, table=True):
    """What the work of one type has spent on one day (YYYY-MM-DD in the board's zone). A row per day: they are few."""

    __tablename__ = "spending"

    day: str = Field(primary_key=True, max_length=10)
    type: str = Field(primary_key=True, max_length=120)
    calls: int = Field(default=0, sa_column=Column(BigInteger(), nullable=False))
    tokens: int = Field(default=0, sa_column=Column(BigInteger(), nullable=False))


live_settings = table_of(LiveSetting)
changes = table_of(Change)
limits = table_of(Limit)
spending = table_of(Spending)
