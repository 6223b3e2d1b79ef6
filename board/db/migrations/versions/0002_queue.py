"""Lanes, pools and deadlines; workers, schedules, settings that change while the board runs.

Revision ID: 0002
Revises: 0001
"""

import sqlalchemy as sa
from alembic import op

from board.db.schema import BigId
from board.db.types import JsonText, UtcTime

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "changes",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("at", UtcTime(), nullable=False),
        sa.Column("actor", sa.String(length=200), nullable=False),
        sa.Column("what", sa.String(length=120), nullable=False),
        sa.Column("before", JsonText(), nullable=True),
        sa.Column("after", JsonText(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("changes", schema=None) as batch_op:
        batch_op.create_index("ix_changes_what", ["what", "id"], unique=False)

    op.create_table(
        "firings",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("schedule", sa.String(length=120), nullable=False),
        sa.Column("due_at", UtcTime(), nullable=False),
        sa.Column("fired_at", UtcTime(), nullable=False),
        sa.Column("task_id", sa.String(length=200), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("schedule", "due_at"),
    )
    op.create_table(
        "leaderships",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("holder", sa.String(length=200), nullable=False),
        sa.Column("until", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "live_settings",
        sa.Column("key", sa.String(length=80), nullable=False),
        sa.Column("value", JsonText(), nullable=False),
        sa.Column("changed_at", UtcTime(), nullable=False),
        sa.Column("changed_by", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "schedules",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("cron", sa.String(length=120), nullable=False),
        sa.Column("zone", sa.String(length=64), nullable=False),
        sa.Column("catch_up", sa.String(length=8), nullable=False),
        sa.Column("body", JsonText(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("next_at", UtcTime(), nullable=True),
        sa.Column("changed_at", UtcTime(), nullable=False),
        sa.Column("changed_by", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "workers",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("host", sa.String(length=200), nullable=False),
        sa.Column("version", sa.String(length=40), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("running", sa.Integer(), nullable=False),
        sa.Column("narrow", JsonText(), nullable=True),
        sa.Column("started_at", UtcTime(), nullable=False),
        sa.Column("seen_at", UtcTime(), nullable=False),
        sa.Column("claimed_at", UtcTime(), nullable=True),
        sa.Column("stopped_at", UtcTime(), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
    # Never by a copy of the table: SQLite's copy would forget AUTOINCREMENT, and an id may not be given twice.
    with op.batch_alter_table("tasks", schema=None, recreate="never") as batch_op:
        batch_op.add_column(sa.Column("pool", sa.String(length=12), nullable=False, server_default="board"))
        batch_op.add_column(sa.Column("home_pool", sa.String(length=12), nullable=False, server_default="board"))
        batch_op.add_column(sa.Column("rank", sa.SmallInteger(), nullable=False, server_default="1"))
        batch_op.add_column(sa.Column("deadline_at", UtcTime(), nullable=True))
        batch_op.add_column(sa.Column("hurry_at", UtcTime(), nullable=True))
        batch_op.add_column(sa.Column("deadline_missed", sa.Boolean(), nullable=False, server_default=sa.false()))
        batch_op.create_index(
            "ix_tasks_hurry",
            ["hurry_at"],
            unique=False,
            sqlite_where=sa.text("hurry_at IS NOT NULL"),
            postgresql_where=sa.text("hurry_at IS NOT NULL"),
        )
        batch_op.create_index(
            "ix_tasks_deadline",
            ["deadline_at"],
            unique=False,
            sqlite_where=sa.text(
                "deadline_at IS NOT NULL AND NOT deadline_missed AND status IN ('pending', 'running', 'needs_review', 'retrying')"
            ),
            postgresql_where=sa.text(
                "deadline_at IS NOT NULL AND NOT deadline_missed AND status IN ('pending', 'running', 'needs_review', 'retrying')"
            ),
        )
        batch_op.drop_index(
            "ix_tasks_ready",
            sqlite_where=sa.text("status IN ('pending', 'retrying')"),
            postgresql_where=sa.text("status IN ('pending', 'retrying')"),
        )
        batch_op.create_index(
            "ix_tasks_ready",
            ["pool", "lane", "rank", "ready_at", "id"],
            unique=False,
            sqlite_where=sa.text("status IN ('pending', 'retrying')"),
            postgresql_where=sa.text("status IN ('pending', 'retrying')"),
        )


def downgrade() -> None:
    with op.batch_alter_table("tasks", schema=None, table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_index("ix_tasks_deadline")
        batch_op.drop_index("ix_tasks_hurry")
        batch_op.drop_index(
            "ix_tasks_ready",
            sqlite_where=sa.text("status IN ('pending', 'retrying')"),
            postgresql_where=sa.text("status IN ('pending', 'retrying')"),
        )
        batch_op.create_index(
            ("ix_tasks_ready"),
            ["lane", "ready_at", "id"],
            unique=False,
            sqlite_where=sa.text("status IN ('pending', 'retrying')"),
            postgresql_where=sa.text("status IN ('pending', 'retrying')"),
        )
        batch_op.drop_column("deadline_missed")
        batch_op.drop_column("hurry_at")
        batch_op.drop_column("deadline_at")
        batch_op.drop_column("rank")
        batch_op.drop_column("home_pool")
        batch_op.drop_column("pool")

    op.drop_table("workers")
    op.drop_table("schedules")
    op.drop_table("live_settings")
    op.drop_table("leaderships")
    op.drop_table("firings")
    with op.batch_alter_table("changes", schema=None) as batch_op:
        batch_op.drop_index("ix_changes_what")

    op.drop_table("changes")
