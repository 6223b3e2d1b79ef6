"""Notices: who is told what, what is to be told; alerts, and what was changed about their rules.

Revision ID: 0030
Revises: 0029
"""

import sqlalchemy as sa
from alembic import op

from board.db.schema import BigId
from board.db.types import JsonText, UtcTime

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

_WAITING = sa.text("status = 'waiting'")
_SENDING = sa.text("status = 'sending'")
_OPEN = sa.text("closed_at IS NULL")
_FAILED = sa.text("status = 'failed'")


def upgrade() -> None:
    op.create_table(
        "notice_routes",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("audience", sa.String(length=200), nullable=False),
        sa.Column("about", JsonText(), nullable=False),
        sa.Column("connection", sa.String(length=120), nullable=False),
        sa.Column("address", sa.String(length=320), nullable=False),
        sa.Column("zone", sa.String(length=64), nullable=False),
        sa.Column("quiet_from", sa.String(length=5), nullable=True),
        sa.Column("quiet_to", sa.String(length=5), nullable=True),
        sa.Column("lang", sa.String(length=8), nullable=False),
        sa.Column("owner", sa.String(length=200), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("told_at", UtcTime(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "noted",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(length=24), nullable=False),
        sa.Column("key", sa.String(length=260), nullable=False),
        sa.Column("task", BigId, nullable=True),
        sa.Column("audience", JsonText(), nullable=True),
        sa.Column("data", JsonText(), nullable=True),
        sa.Column("at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "notices",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("route", BigId, autoincrement=False, nullable=False),
        sa.Column("key", sa.String(length=260), nullable=False),
        sa.Column("kind", sa.String(length=24), nullable=False),
        sa.Column("task_id", sa.String(length=200), nullable=True),
        sa.Column("data", JsonText(), nullable=False),
        sa.Column("status", sa.String(length=8), nullable=False),
        sa.Column("message", sa.String(length=40), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("due_at", UtcTime(), nullable=False),
        sa.Column("give_up_at", UtcTime(), nullable=False),
        sa.Column("taken_at", UtcTime(), nullable=True),
        sa.Column("closed_at", UtcTime(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["route"], ["notice_routes.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("route", "key"),
    )
    op.create_index(
        "ix_notices_waiting", "notices", ["route", "due_at"], sqlite_where=_WAITING, postgresql_where=_WAITING
    )
    op.create_index("ix_notices_sending", "notices", ["taken_at"], sqlite_where=_SENDING, postgresql_where=_SENDING)
    op.create_index("ix_notices_created", "notices", ["created_at", "id"])
    op.create_table(
        "alert_settings",
        sa.Column("rule", sa.String(length=40), nullable=False),
        sa.Column("threshold", sa.Float(), nullable=False),
        sa.Column("lasting", sa.Float(), nullable=False),
        sa.Column("quiet", sa.Float(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("changed_at", UtcTime(), nullable=False),
        sa.Column("changed_by", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("rule"),
    )
    op.create_table(
        "alerts",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("rule", sa.String(length=40), nullable=False),
        sa.Column("scope", sa.String(length=200), nullable=False),
        sa.Column("since", UtcTime(), nullable=False),
        sa.Column("opened_at", UtcTime(), nullable=True),
        sa.Column("closed_at", UtcTime(), nullable=True),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("threshold", sa.Float(), nullable=False),
        sa.Column("told", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ux_alerts_open", "alerts", ["rule", "scope"], unique=True, sqlite_where=_OPEN, postgresql_where=_OPEN
    )
    op.create_index("ix_alerts_opened", "alerts", ["opened_at", "id"])
    op.create_index("ix_tasks_failed", "tasks", ["finished_at"], sqlite_where=_FAILED, postgresql_where=_FAILED)


def downgrade() -> None:
    op.drop_index("ix_tasks_failed", "tasks")
    for name in ("alerts", "alert_settings", "notices", "noted", "notice_routes"):
        op.drop_table(name)
