"""The outbox by receiver, and in the order of each task's events.

Revision ID: 0008
Revises: 0007
"""

import sqlalchemy as sa
from alembic import op

from board.db.schema import BigId

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

IN_TURN = sa.text("next_try_at IS NOT NULL AND after IS NULL")
BEHIND = sa.text("after IS NOT NULL")
DUE = sa.text("next_try_at IS NOT NULL")


def upgrade() -> None:
    with op.batch_alter_table("operations", schema=None, recreate="never") as batch_op:
        batch_op.add_column(sa.Column("receiver", sa.Text(), nullable=True))
        batch_op.add_column(sa.Column("after", BigId, nullable=True))
        batch_op.drop_index("ix_operations_outbox")
    # What waits to be sent: the target is `scheme://host:port/path`, the receiver ends with the third slash.
    connection = op.get_bind()
    waiting = connection.execute(sa.text("SELECT id, target FROM operations WHERE next_try_at IS NOT NULL"))
    for operation, target in waiting.all():
        receiver = "/".join(target.split("/", 3)[:3]) + "/"
        connection.execute(
            sa.text("UPDATE operations SET receiver = :receiver WHERE id = :id"),
            {"receiver": receiver, "id": operation},
        )
    with op.batch_alter_table("operations", schema=None, recreate="never") as batch_op:
        batch_op.create_index(
            "ix_operations_outbox",
            ["receiver", "next_try_at", "id"],
            unique=False,
            sqlite_where=IN_TURN,
            postgresql_where=IN_TURN,
        )
        batch_op.create_index(
            "ix_operations_after", ["after"], unique=False, sqlite_where=BEHIND, postgresql_where=BEHIND
        )


def downgrade() -> None:
    with op.batch_alter_table("operations", schema=None, recreate="never") as batch_op:
        batch_op.drop_index("ix_operations_after")
        batch_op.drop_index("ix_operations_outbox")
        batch_op.drop_column("after")
        batch_op.drop_column("receiver")
        batch_op.create_index(
            "ix_operations_outbox", ["next_try_at"], unique=False, sqlite_where=DUE, postgresql_where=DUE
        )
