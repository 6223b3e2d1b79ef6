"""Task types, versioned, and connections, whose secrets are encrypted."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import UniqueConstraint
from sqlmodel import Field, SQLModel

from board.db.schema import id_field, json_field, sealed_field, table_of, text_field, time_field


class TaskType(SQLModel, table=True):
    """One version of one type. An attempt records the version it ran, so no version is ever changed."""

    __tablename__ = "task_types"
    __table_args__ = (UniqueConstraint("name", "version"),)

    id: int = id_field()
    name: str = Field(max_length=120)
    version: int
    current: bool = True
    spec: dict[str, Any] = json_field(nullable=False)
    created_at: datetime = time_field(nullable=False)
    created_by: str = Field(max_length=200)


class Connection(SQLModel, table=True):
    """Where a handler or action calls. `secrets` is one encrypted JSON object."""

    __tablename__ = "connections"

    id: int = id_field()
    name: str = Field(max_length=120, unique=True)
    kind: str = Field(max_length=40)
    url: str = text_field(nullable=False)
    options: dict[str, Any] = json_field(nullable=False)
    secrets: str = sealed_field()
    version: int = 1
    updated_at: datetime = time_field(nullable=False)
    updated_by: str = Field(max_length=200)


task_types = table_of(TaskType)
connections = table_of(Connection)
