"""Who is told what, what is to be told, and what rings."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Column, ForeignKey, Index, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from board.db.schema import BigId, id_field, json_field, table_of, text_field, time_field

WAITING = text("notices.status = 'waiting'")
SENDING = text("notices.status = 'sending'")
_WAITING = text("status = 'waiting'")
_SENDING = text("status = 'sending'")
OPEN = text("closed_at IS NULL")


class Route(SQLModel, table=True):
    """One way by which somebody is told of something: a channel, for whom, and about what."""

    __tablename__ = "notice_routes"

    id: int = id_field()
    audience: str = Field(max_length=200)  # a mail address of a user, the name of a group, or * for everything
    about: list[str] = json_field(nullable=False)
    connection: str = Field(max_length=120)
    address: str = Field(max_length=320)  # of mail; else empty
    zone: str = Field(max_length=64)
    quiet_from: str | None = Field(default=None, max_length=5)  # 22:00
    quiet_to: str | None = Field(default=None, max_length=5)
    lang: str = Field(max_length=8)
    owner: str = Field(max_length=200)  # identity of who made it
    created_at: datetime = time_field(nullable=False)
    told_at: datetime | None = time_field()  # when its last message left


class Noted(SQLModel, table=True):
    """Something that people are to hear of, noted in the transaction in which it happened."""

    __tablename__ = "noted"

    id: int = id_field()
    kind: str = Field(max_length=24)
    key: str = Field(max_length=260)  # tells it from everything else that happens
    task: int | None = Field(default=None, sa_column=Column(BigId))
    audience: list[str] | None = json_field()  # whom it concerns, where that does not follow from the task
    data: dict[str, Any] | None = json_field()
    at: datetime = time_field(nullable=False)


class Notice(SQLModel, table=True):
    """One thing that one route is to tell, and what became of it. Several that leave together share a message."""

    __tablename__ = "notices"
    __table_args__ = (
        UniqueConstraint("route", "key"),
        Index("ix_notices_waiting", "route", "due_at", sqlite_where=_WAITING, postgresql_where=_WAITING),
        Index("ix_notices_sending", "taken_at", sqlite_where=_SENDING, postgresql_where=_SENDING),
        Index("ix_notices_created", "created_at", "id"),
    )

    id: int = id_field()
    route: int = Field(
        sa_column=Column(BigId, ForeignKey("notice_routes.id", ondelete="CASCADE"), nullable=False, autoincrement=False)
    )
    key: str = Field(max_length=260)
    kind: str = Field(max_length=24)
    task_id: str | None = Field(default=None, max_length=200)
    data: dict[str, Any] = json_field(nullable=False)
    status: str = Field(max_length=8)  # waiting, sending, sent, failed or unknown
    message: str | None = Field(default=None, max_length=40)  # the message that it is in
    tries: int = 0
    due_at: datetime = time_field(nullable=False)
    give_up_at: datetime = time_field(nullable=False)
    taken_at: datetime | None = time_field()
    closed_at: datetime | None = time_field()
    last_error: str | None = text_field()
    created_at: datetime = time_field(nullable=False)


class AlertSetting(SQLModel, table=True):
    """What somebody has changed about a rule."""

    __tablename__ = "alert_settings"

    rule: str = Field(primary_key=True, max_length=40)
    threshold: float
    lasting: float  # seconds
    quiet: float  # seconds
    enabled: bool
    changed_at: datetime = time_field(nullable=False)
    changed_by: str = Field(max_length=200)


class Alert(SQLModel, table=True):
    """One time that a rule held. opened_at: when it had held for long enough; None: not yet."""

    __tablename__ = "alerts"
    __table_args__ = (
        Index("ux_alerts_open", "rule", "scope", unique=True, sqlite_where=OPEN, postgresql_where=OPEN),
        Index("ix_alerts_opened", "opened_at", "id"),
    )

    id: int = id_field()
    rule: str = Field(max_length=40)
    scope: str = Field(max_length=200)  # a lane, a connection, a worker; empty for the whole board
    since: datetime = time_field(nullable=False)
    opened_at: datetime | None = time_field()
    closed_at: datetime | None = time_field()
    value: float
    threshold: float
    told: bool = False


routes = table_of(Route)
noted = table_of(Noted)
notices = table_of(Notice)
alert_settings = table_of(AlertSetting)
alerts = table_of(Alert)
