"""Who is at work on a review, and until when it is put aside.

Revision ID: 0024
Revises: 0023
"""

import sqlalchemy as sa
from alembic import op

from board.db.types import UtcTime

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("reviews", sa.Column("claimed_by", sa.String(length=200), nullable=True))
    op.add_column("reviews", sa.Column("claimed_until", UtcTime(), nullable=True))
    op.add_column("reviews", sa.Column("snoozed_until", UtcTime(), nullable=True))


def downgrade() -> None:
    for name in ("snoozed_until", "claimed_until", "claimed_by"):
        op.drop_column("reviews", name)
