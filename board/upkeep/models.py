"""What the clock brings about: who keeps it, what it puts in, and what it has put in already."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import UniqueConstraint
from sqlmodel import Field, SQLModel

from board.db.schema import id_field, json_field, table_of, text_field, time_field


class Leadership(SQLModel, table=True):
    """Who does what only one process may do at a time. Void once `until` is past."""

    __tablename__ = "leaderships"

    name: str = Field(primary_key=True, max_length=40)
    holder: str = Field(max_length=200)
    until: datetime = time_field(nullable=False)


class Schedule(SQLModel, table=True):
    """Tasks that are put in by the clock."""

    __tablename__ = "schedules"

    id: int = id_field()
    name: str = Field(max_length=120, unique=True)
    cron: str = Field(max_length=120)
    zone: str = Field(max_length=64)
    catch_up: str = Field(max_length=8)  # skip, one or all: what happens with due times that nobody was up for
    body: dict[str, Any] = json_field(nullable=False)  # of POST /tasks
    paused: bool = False
    version: int = 1
    next_at: datetime | None = time_field()
    changed_at: datetime = time_field(nullable=False)
    changed_by: str = Field(max_length=200)


class Firing(SQLModel, table=True):
    """One due time of one schedule. The unique pair makes a second firing impossible."""

    __tablename__ = "firings"
    __table_args__ = (UniqueConstraint("schedule", "due_at"),)

    id: int = id_field()
    schedule: str = Field(max_length=120)
    due_at: datetime = time_field(nullable=False)
    fired_at: datetime = time_field(nullable=False)
    task_id: str | None = Field(default=None, max_length=200)
    note: str | None = text_field()


leaderships = table_of(Leadership)
schedules = table_of(Schedule)
firings = table_of(Firing)
