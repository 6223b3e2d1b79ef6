"""Operations that wait for a person's word are found without looking at any other.

Revision ID: 0009
Revises: 0008
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_INDEXES = (
    ("ix_operations_unknown", "status = 'unknown' AND NOT harmless"),
    ("ix_operations_announced", "kind = 'outside' AND status IN ('reserved', 'sent')"),
)


def upgrade() -> None:
    for name, condition in _INDEXES:
        op.create_index(
            name, "operations", ["id"], sqlite_where=sa.text(condition), postgresql_where=sa.text(condition)
        )


def downgrade() -> None:
    for name, _ in _INDEXES:
        op.drop_index(name, table_name="operations")
