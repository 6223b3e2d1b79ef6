"""People, their sessions, and keys for programs. Secrets are kept as hashes only."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Column, ForeignKey, Index
from sqlmodel import Field, SQLModel

from board.db.schema import BigId, id_field, json_field, table_of, time_field


class User(SQLModel, table=True):
    __tablename__ = "users"

    id: int = id_field()
    email: str = Field(max_length=200, unique=True)
    role: str = Field(max_length=12)  # owner, operator, reviewer, viewer
    password_hash: str | None = None  # none until the set-up link was used
    lang: str | None = Field(default=None, max_length=8)
    disabled: bool = False
    created_at: datetime = time_field(nullable=False)


class ApiKey(SQLModel, table=True):
    __tablename__ = "api_keys"

    id: int = id_field()
    name: str = Field(max_length=120, unique=True)
    secret_hash: str = Field(max_length=64, unique=True)
    hint: str = Field(max_length=12)  # the first characters, so that people can tell keys apart
    scopes: list[str] = json_field(nullable=False)
    # rate: how many tasks it may put in, such as 60/min; max_waiting: how many of them may wait at the same time
    limits: dict[str, Any] | None = json_field()
    created_at: datetime = time_field(nullable=False)
    revoked_at: datetime | None = time_field()


class WebSession(SQLModel, table=True):
    __tablename__ = "sessions"

    token_hash: str = Field(primary_key=True, max_length=64)
    user: int = Field(sa_column=Column(BigId, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True))
    csrf: str = Field(max_length=64)
    created_at: datetime = time_field(nullable=False)
    expires_at: datetime = time_field(nullable=False)


class SetupLink(SQLModel, table=True):
    """A one-time link to set a password: for the first owner, and for users made on the command line."""

    __tablename__ = "setup_links"

    token_hash: str = Field(primary_key=True, max_length=64)
    user: int | None = Field(
        default=None, sa_column=Column(BigId, ForeignKey("users.id", ondelete="CASCADE"), nullable=True)
    )  # none: makes the first owner
    expires_at: datetime = time_field(nullable=False)
    used_at: datetime | None = time_field()


class Group(SQLModel, table=True):
    """People and keys under one name, such as `sales`: what a type's `reviewers` may name."""

    __tablename__ = "groups"

    id: int = id_field()
    name: str = Field(max_length=120, unique=True)
    created_at: datetime = time_field(nullable=False)


class GroupMember(SQLModel, table=True):
    """member: `user:EMAIL` or `key:NAME`, as in `Actor.identity`."""

    __tablename__ = "group_members"

    group: int = Field(
        sa_column=Column(BigId, ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True, autoincrement=False)
    )
    member: str = Field(primary_key=True, max_length=200, index=True)


class View(SQLModel, table=True):
    """A list as somebody has saved it. kind: which list, such as `reviews`. state: what its address says."""

    __tablename__ = "views"
    __table_args__ = (Index("ux_views_name", "owner", "kind", "name", unique=True),)

    id: int = id_field()
    owner: str = Field(max_length=200)  # as in `Actor.identity`
    kind: str = Field(max_length=16)
    name: str = Field(max_length=80)
    state: dict[str, Any] = json_field(nullable=False)
    created_at: datetime = time_field(nullable=False)


users = table_of(User)
groups = table_of(Group)
group_members = table_of(GroupMember)
api_keys = table_of(ApiKey)
sessions = table_of(WebSession)
setup_links = table_of(SetupLink)
views = table_of(View)
