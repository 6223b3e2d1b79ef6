"""What types spend in a day.

Revision ID: 0022
Revises: 0021
"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "spending",
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("type", sa.String(length=120), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("day", "type"),
    )


def downgrade() -> None:
    op.drop_table("spending")
