"""Who waits for an operation is found from the operation too, as when it is removed.

Revision ID: 0019
Revises: 0018
"""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_operation_waits_operation", "operation_waits", ["operation"])


def downgrade() -> None:
    op.drop_index("ix_operation_waits_operation", table_name="operation_waits")
