"""Rights to call back: a token for each attempt whose result is handed in from outside.

Revision ID: 0011
Revises: 0010
"""

import sqlalchemy as sa
from alembic import op

from board.db.schema import BigId
from board.db.types import JsonText, UtcTime

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "callback_rights",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("task", BigId, nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("answer", JsonText(), nullable=True),
        sa.Column("answered_at", UtcTime(), nullable=True),
        sa.Column("closed_at", UtcTime(), nullable=True),
        sa.Column("late_at", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("token_hash"),
    )
    with op.batch_alter_table("callback_rights", schema=None) as batch_op:
        batch_op.create_index("ix_callback_rights_task", ["task", "id"], unique=False)


def downgrade() -> None:
    op.drop_table("callback_rights")
