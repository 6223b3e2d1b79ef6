"""The indexes of what limits hold back stand on the columns alone: SQLite would take one that begins with the status.

Revision ID: 0007
Revises: 0006
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

INDEXES = (
    ("ix_tasks_held", ["held_by", "lane", "rank", "ready_at", "id"], "held_by IS NOT NULL"),
    ("ix_tasks_let_in", ["let_in"], "let_in IS NOT NULL"),
)


def upgrade() -> None:
    _make("")


def downgrade() -> None:
    _make("status IN ('pending', 'retrying') AND ")


def _make(status: str) -> None:
    for name, columns, condition in INDEXES:
        op.drop_index(name, table_name="tasks")
        where = sa.text(status + condition)
        op.create_index(name, "tasks", columns, unique=False, sqlite_where=where, postgresql_where=where)
