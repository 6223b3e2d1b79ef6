"""One row per visit of a task to needs_review."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Column, Computed, ForeignKey, Index, Integer, false, text
from sqlmodel import Field, SQLModel

from board.db.schema import BigId, id_field, json_field, table_of, text_field, time_field
from board.db.types import UtcTime

_DUE_ORDER = "coalesce(due_at, '9999-01-01 00:00:00+00')"
_RISK_ORDER = "CASE risk WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END"


# What still gets a reminder. Queries use this very text, as with the conditions of board.tasks.models.
REMINDED = text("status = 'open' AND remind_at IS NOT NULL")


class Review(SQLModel, table=True):
    """A question to a person. `version` and `content_hash` pin what was shown; a decision must name them."""

    __tablename__ = "reviews"
    __table_args__ = (
        # The inbox in its order: a page of it is read from here, however many wait.
        Index(
            "ix_reviews_inbox",
            "due_order",
            "risk_order",
            "lane",
            "id",
            sqlite_where=text("status = 'open'"),
            postgresql_where=text("status = 'open'"),
        ),
        Index(
            "ix_reviews_open",
            "due_at",
            "id",
            sqlite_where=text("status = 'open'"),
            postgresql_where=text("status = 'open'"),
        ),
        # One open review a task at most, whatever races.
        Index(
            "ux_reviews_one_open",
            "task",
            unique=True,
            sqlite_where=text("status = 'open'"),
            postgresql_where=text("status = 'open'"),
        ),
        Index("ix_reviews_task", "task", "id"),
        Index("ix_reviews_remind", "remind_at", sqlite_where=REMINDED, postgresql_where=REMINDED),
        # Few reviews ask about an operation; when one of those goes, its review is found.
        Index(
            "ix_reviews_operation",
            "operation",
            sqlite_where=text("operation IS NOT NULL"),
            postgresql_where=text("operation IS NOT NULL"),
        ),
        Index("ix_reviews_decided", "decided_at", "id"),
    )

    id: int = id_field()
    task: int = Field(sa_column=Column(BigId, ForeignKey("tasks.id", ondelete="CASCADE"), nullable=False))
    reason: str = Field(max_length=24)
    message: str | None = text_field()  # why, in one sentence
    status: str = Field(default="open", max_length=12)  # open, decided, closed (left without a decision)
    risk: str = Field(default="low", max_length=8)
    round: int = 1
    version: int = 1
    content_hash: str = Field(max_length=64)
    operation: int | None = Field(
        default=None, sa_column=Column(BigId, ForeignKey("operations.id", ondelete="SET NULL"))
    )
    due_at: datetime | None = time_field()
    remind_at: datetime | None = time_field()  # none: no reminder is left
    # Made by the database from due_at and risk, whoever writes those: what has no due time comes last.
    due_order: datetime | None = Field(sa_column=Column(UtcTime(), Computed(_DUE_ORDER, persisted=True)))
    risk_order: int | None = Field(sa_column=Column(Integer(), Computed(_RISK_ORDER, persisted=True)))
    lane: int = Field(default=2, sa_column_kwargs={"server_default": "2"})  # of its task: it changes by hand only
    proposed: str | None = Field(default=None, max_length=8)  # the verdict that the AI proposed when it was opened
    opened_at: datetime = time_field(nullable=False)
    claimed_by: str | None = Field(default=None, max_length=200)  # counts until claimed_until
    claimed_until: datetime | None = time_field()
    snoozed_until: datetime | None = time_field()
    verdict: str | None = Field(default=None, max_length=16)
    decided_version: int | None = None
    decided_at: datetime | None = time_field()
    decider_kind: str | None = Field(default=None, max_length=16)
    decider: str | None = Field(default=None, max_length=200)
    channel: str | None = Field(default=None, max_length=16)
    instruction: str | None = text_field()
    decision_reason: str | None = text_field()
    reason_class: str | None = Field(default=None, max_length=16)
    idempotency_key: str | None = Field(default=None, max_length=200)
    undo_until: datetime | None = time_field()
    edited: bool = Field(default=False, sa_column_kwargs={"server_default": false()})  # approved with changes
    data: dict[str, Any] | None = json_field()


class Opening(SQLModel, table=True):
    """Somebody has a review open in a browser: since when first, and when it was last heard of. It locks nothing."""

    __tablename__ = "review_openings"

    review: int = Field(
        sa_column=Column(BigId, ForeignKey("reviews.id", ondelete="CASCADE"), primary_key=True, autoincrement=False)
    )
    person: str = Field(primary_key=True, max_length=200)  # as in `Actor.identity`
    opened_at: datetime = time_field(nullable=False)
    seen_at: datetime = time_field(nullable=False)


class Approval(SQLModel, table=True):
    """One of several approvals that a review needs. It counts for the version that the person saw, and no other."""

    __tablename__ = "approvals"

    review: int = Field(
        sa_column=Column(BigId, ForeignKey("reviews.id", ondelete="CASCADE"), primary_key=True, autoincrement=False)
    )
    approver: str = Field(primary_key=True, max_length=200)  # as in `Actor.identity`
    version: int
    at: datetime = time_field(nullable=False)


class ReviewLink(SQLModel, table=True):
    """An address that shows one review to one person without a sign-in. The token in it is kept as a hash only."""

    __tablename__ = "review_links"

    id: int = id_field()
    token_hash: str = Field(max_length=64, unique=True)
    review: int = Field(
        sa_column=Column(BigId, ForeignKey("reviews.id", ondelete="CASCADE"), nullable=False, index=True)
    )
    user: int = Field(sa_column=Column(BigId, ForeignKey("users.id", ondelete="CASCADE"), nullable=False))
    purpose: str = Field(max_length=24)  # what it was made for: api, cli, or the kind of notice that carries it
    created_at: datetime = time_field(nullable=False)
    expires_at: datetime = time_field(nullable=False)
    revoked_at: datetime | None = time_field()
    opened_at: datetime | None = time_field()  # when an opening was noted last
    acts: int = 0  # how often something was done by it: a page shown before the last time does nothing more


reviews = table_of(Review)
openings = table_of(Opening)
approvals = table_of(Approval)
review_links = table_of(ReviewLink)
