"""What of a key's tasks waits is counted by an index of its own.

Revision ID: 0015
Revises: 0014
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

WAITING = sa.text("status IN ('pending', 'retrying')")


def upgrade() -> None:
    op.create_index("ix_tasks_waiting_of", "tasks", ["requester"], sqlite_where=WAITING, postgresql_where=WAITING)


def downgrade() -> None:
    op.drop_index("ix_tasks_waiting_of", "tasks")
