"""The index of what waits of a key says so, so that no claim takes it for an index of all that is ready.

Revision ID: 0018
Revises: 0017
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

BEFORE = sa.text("status IN ('pending', 'retrying')")
WAITING_OF_KEYS = sa.text("status IN ('pending', 'retrying') AND requester >= 'key:' AND requester < 'key;'")


def upgrade() -> None:
    _anew(WAITING_OF_KEYS)


def downgrade() -> None:
    _anew(BEFORE)


def _anew(condition: sa.TextClause) -> None:
    op.drop_index("ix_tasks_waiting_of", "tasks")
    op.create_index("ix_tasks_waiting_of", "tasks", ["requester"], sqlite_where=condition, postgresql_where=condition)
