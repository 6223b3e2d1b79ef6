"""Calls that are still to be called off.

Revision ID: 0020
Revises: 0019
"""

import sqlalchemy as sa
from alembic import op

from board.db.schema import BigId
from board.db.types import UtcTime

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "withdrawals",
        sa.Column("operation", BigId, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("next_try_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["operation"], ["operations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("operation"),
    )


def downgrade() -> None:
    op.drop_table("withdrawals")
