"""Which task waits for whose call.

Revision ID: 0012
Revises: 0011
"""

import sqlalchemy as sa
from alembic import op

from board.db.schema import BigId

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "operation_waits",
        sa.Column("task", BigId, nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("operation", BigId, nullable=False),
        sa.ForeignKeyConstraint(["operation"], ["operations.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("task"),
    )


def downgrade() -> None:
    op.drop_table("operation_waits")
