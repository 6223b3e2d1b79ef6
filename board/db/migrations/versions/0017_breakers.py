"""Connections whose calls fail.

Revision ID: 0017
Revises: 0016
"""

import sqlalchemy as sa
from alembic import op

from board.db.types import UtcTime

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "breakers",
        sa.Column("connection", sa.String(length=120), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("shuts", sa.Integer(), nullable=False),
        sa.Column("since", UtcTime(), nullable=False),
        sa.Column("until", UtcTime(), nullable=True),
        sa.Column("trouble", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("connection"),
    )


def downgrade() -> None:
    op.drop_table("breakers")
