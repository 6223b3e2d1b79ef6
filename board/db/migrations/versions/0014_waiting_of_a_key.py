"""What of a key's tasks waits is counted by an index of its own.

Revision ID: 0014
Revises: 0013
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

WAITING = sa.text("status IN ('pending', 'retrying')")


def upgrade() -> None:
    op.create_index("ix_tasks_waiting_of", "tasks", ["requester"], sqlite_where=WAITING, postgresql_where=WAITING)


def downgrade() -> None:
    op.drop_index("ix_tasks_waiting_of", "tasks")
