"""Limits: what they have used up, which tasks they hold back, and how many tasks a key may put in.

Revision ID: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

from board.db.types import JsonText, UtcTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

WAITING = "status IN ('pending', 'retrying')"
READY = "status IN ('pending', 'retrying') AND held_by IS NULL"
HELD = "status IN ('pending', 'retrying') AND held_by IS NOT NULL"
LET_IN = "status IN ('pending', 'retrying') AND let_in IS NOT NULL"
LINE = ["pool", "lane", "rank", "ready_at", "id"]


def upgrade() -> None:
    op.create_table(
        "limits",
        sa.Column("scope", sa.String(length=160), nullable=False),
        sa.Column("tokens", sa.Float(), nullable=True),
        sa.Column("refilled_at", UtcTime(), nullable=True),
        sa.Column("day", sa.String(length=10), nullable=True),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("scope"),
    )
    op.add_column("api_keys", sa.Column("limits", JsonText(), nullable=True))
    # Never by a copy of the table: SQLite's copy would forget AUTOINCREMENT, and an id may not be given twice.
    with op.batch_alter_table("tasks", schema=None, recreate="never") as batch_op:
        batch_op.add_column(sa.Column("limit_key", sa.String(length=32), nullable=True))
        batch_op.add_column(sa.Column("held_by", sa.String(length=160), nullable=True))
        batch_op.add_column(sa.Column("let_in", sa.String(length=160), nullable=True))
        batch_op.drop_index("ix_tasks_ready")
        for name, columns, condition in (
            ("ix_tasks_ready", LINE, READY),
            ("ix_tasks_held", ["held_by", "lane", "rank", "ready_at", "id"], HELD),
            ("ix_tasks_let_in", ["let_in"], LET_IN),
        ):
            where = sa.text(condition)
            batch_op.create_index(name, columns, unique=False, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    with op.batch_alter_table("tasks", schema=None, table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_index("ix_tasks_let_in")
        batch_op.drop_index("ix_tasks_held")
        batch_op.drop_index("ix_tasks_ready")
        where = sa.text(WAITING)
        batch_op.create_index("ix_tasks_ready", LINE, unique=False, sqlite_where=where, postgresql_where=where)
        batch_op.drop_column("let_in")
        batch_op.drop_column("held_by")
        batch_op.drop_column("limit_key")
    op.drop_column("api_keys", "limits")
    op.drop_table("limits")
