"""Notes of what callers are to be told, before it is written out.

Revision ID: 0021
Revises: 0020
"""

import sqlalchemy as sa
from alembic import op

from board.db.types import UtcTime

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "untold",
        sa.Column("task", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("due_at", UtcTime(), nullable=True),
        sa.PrimaryKeyConstraint("task", "seq"),
    )


def downgrade() -> None:
    op.drop_table("untold")
