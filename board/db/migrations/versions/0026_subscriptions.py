"""Subscriptions, and the events that they are to hear of.

Revision ID: 0026
Revises: 0025
"""

import sqlalchemy as sa
from alembic import op

from board.db.schema import BigId
from board.db.types import JsonText, UtcTime

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_SUBSCRIBED = sa.text("subscription IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "subscriptions",
        sa.Column("id", sa.String(length=20), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("events", JsonText(), nullable=False),
        sa.Column("types", JsonText(), nullable=True),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("owner", sa.String(length=200), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("disabled_at", UtcTime(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("fingerprint"),
    )
    op.create_table(
        "announcements",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("event", sa.String(length=40), nullable=False),
        sa.Column("type", sa.String(length=120), nullable=True),
        sa.Column("task", BigId, nullable=True),
        sa.Column("task_id", sa.String(length=200), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("at", UtcTime(), nullable=False),
        sa.Column("due_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_announcements_task", "announcements", ["task"])
    op.add_column("operations", sa.Column("subscription", sa.String(length=20), nullable=True))
    op.create_index(
        "ix_operations_subscription",
        "operations",
        ["subscription", "status", "id"],
        sqlite_where=_SUBSCRIBED,
        postgresql_where=_SUBSCRIBED,
    )


def downgrade() -> None:
    op.drop_index("ix_operations_subscription", "operations")
    op.drop_column("operations", "subscription")
    op.drop_table("announcements")
    op.drop_table("subscriptions")
