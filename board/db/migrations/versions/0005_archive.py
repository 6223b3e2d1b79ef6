"""Failed tasks are acknowledged; what a task leaves behind is found by an index when the task goes.

Revision ID: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op

from board.db.types import UtcTime

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.add_column(sa.Column("acknowledged_at", UtcTime(), nullable=True))
    op.drop_index("ix_operations_task", table_name="operations")
    op.create_index(
        "ix_operations_task",
        "operations",
        ["task", "id"],
        sqlite_where=sa.text("task IS NOT NULL"),
        postgresql_where=sa.text("task IS NOT NULL"),
    )
    op.create_index(
        "ix_reviews_operation",
        "reviews",
        ["operation"],
        sqlite_where=sa.text("operation IS NOT NULL"),
        postgresql_where=sa.text("operation IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_reviews_operation", table_name="reviews")
    op.drop_index("ix_operations_task", table_name="operations")
    op.create_index("ix_operations_task", "operations", ["task", "id"])
    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.drop_column("acknowledged_at")
