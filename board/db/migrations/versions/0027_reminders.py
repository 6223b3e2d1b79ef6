"""Reminders of reviews before they are due.

Revision ID: 0027
Revises: 0026
"""

import sqlalchemy as sa
from alembic import op

from board.db.types import UtcTime

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

_REMINDED = sa.text("status = 'open' AND remind_at IS NOT NULL")


def upgrade() -> None:
    op.add_column("reviews", sa.Column("remind_at", UtcTime(), nullable=True))
    op.create_index("ix_reviews_remind", "reviews", ["remind_at"], sqlite_where=_REMINDED, postgresql_where=_REMINDED)


def downgrade() -> None:
    op.drop_index("ix_reviews_remind", "reviews")
    op.drop_column("reviews", "remind_at")
