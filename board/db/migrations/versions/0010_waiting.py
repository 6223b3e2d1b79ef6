"""What tells why a task waits: the handlers and the pace of each worker, and the type of each claim.

Revision ID: 0010
Revises: 0009
"""

import sqlalchemy as sa
from alembic import op

from board.db.types import JsonText

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("workers", schema=None) as batch_op:
        batch_op.add_column(sa.Column("handlers", JsonText(), nullable=True))
        batch_op.add_column(sa.Column("pace", JsonText(), nullable=True))
    op.add_column("claims", sa.Column("type", sa.String(length=120), nullable=True))
    op.execute("UPDATE claims SET type = (SELECT tasks.type FROM tasks WHERE tasks.id = claims.task)")
    with op.batch_alter_table("claims", schema=None) as batch_op:
        batch_op.alter_column("type", existing_type=sa.String(length=120), nullable=False)
        batch_op.create_index("ix_claims_type", ["type", "made_at"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("claims", schema=None) as batch_op:
        batch_op.drop_index("ix_claims_type")
        batch_op.drop_column("type")
    with op.batch_alter_table("workers", schema=None) as batch_op:
        batch_op.drop_column("pace")
        batch_op.drop_column("handlers")
