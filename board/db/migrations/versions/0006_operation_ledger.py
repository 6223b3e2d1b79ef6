"""The operation ledger for outside programs, what is known of an operation, and tasks that wait for an answer.

Revision ID: 0006
Revises: 0005
"""

import sqlalchemy as sa
from alembic import op

from board.db.schema import BigId
from board.db.types import JsonText, UtcTime

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_NEW_INDEXES = (
    ("ix_operations_unsettled", ["status", "id"], "status <> 'confirmed'"),
    ("ix_operations_owner", ["owner", "id"], "owner IS NOT NULL"),
)


def upgrade() -> None:
    op.create_table(
        "operation_events",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("operation", BigId, nullable=False),
        sa.Column("at", UtcTime(), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("actor_kind", sa.String(length=16), nullable=False),
        sa.Column("actor_name", sa.String(length=200), nullable=False),
        sa.Column("channel", sa.String(length=16), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("data", JsonText(), nullable=True),
        sa.ForeignKeyConstraint(["operation"], ["operations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("operation_events", schema=None) as batch_op:
        batch_op.create_index("ix_operation_events_operation", ["operation", "id"], unique=False)
    with op.batch_alter_table("operations", schema=None, recreate="never") as batch_op:
        batch_op.add_column(sa.Column("owner", sa.String(length=200), nullable=True))
        batch_op.add_column(sa.Column("execution_id", sa.Text(), nullable=True))
        batch_op.add_column(sa.Column("asks", sa.Integer(), nullable=False, server_default="0"))
        batch_op.add_column(sa.Column("harmless", sa.Boolean(), nullable=False, server_default=sa.false()))
        batch_op.add_column(sa.Column("resolution", sa.String(length=16), nullable=True))
        batch_op.drop_index("ix_operations_open")
        for name, columns, condition in _NEW_INDEXES:
            batch_op.create_index(
                name, columns, unique=False, sqlite_where=sa.text(condition), postgresql_where=sa.text(condition)
            )
    with op.batch_alter_table("tasks", schema=None, recreate="never") as batch_op:
        batch_op.add_column(sa.Column("reconciling", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    with op.batch_alter_table("tasks", schema=None, recreate="never") as batch_op:
        batch_op.drop_column("reconciling")
    with op.batch_alter_table("operations", schema=None, recreate="never") as batch_op:
        for name, _, _ in _NEW_INDEXES:
            batch_op.drop_index(name)
        for name in ("resolution", "harmless", "asks", "execution_id", "owner"):
            batch_op.drop_column(name)
        condition = sa.text("status IN ('sent', 'unknown')")
        batch_op.create_index(
            "ix_operations_open", ["status", "id"], unique=False, sqlite_where=condition, postgresql_where=condition
        )
    op.drop_table("operation_events")
