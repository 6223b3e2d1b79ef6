"""Who is at work."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlmodel import Field, SQLModel

from board.db.schema import json_field, table_of, time_field


class Worker(SQLModel, table=True):
    """One process that takes work. A row that was not seen for a while is a worker that is gone."""

    __tablename__ = "workers"

    name: str = Field(primary_key=True, max_length=200)
    host: str = Field(max_length=200)
    version: str = Field(max_length=40)
    slots: int
    running: int = 0
    narrow: dict[str, Any] | None = json_field()  # only these types and lanes
    started_at: datetime = time_field(nullable=False)
    seen_at: datetime = time_field(nullable=False)
    claimed_at: datetime | None = time_field()
    stopped_at: datetime | None = time_field()


workers = table_of(Worker)
