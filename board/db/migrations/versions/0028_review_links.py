"""Links that show one review to one person.

Revision ID: 0028
Revises: 0027
"""

import sqlalchemy as sa
from alembic import op

from board.db.schema import BigId
from board.db.types import UtcTime

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "review_links",
        sa.Column("id", BigId, primary_key=True, autoincrement=True),
        sa.Column("token_hash", sa.String(length=64), nullable=False, unique=True),
        sa.Column("review", BigId, sa.ForeignKey("reviews.id", ondelete="CASCADE"), nullable=False),
        sa.Column("user", BigId, sa.ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
        sa.Column("purpose", sa.String(length=24), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("expires_at", UtcTime(), nullable=False),
        sa.Column("revoked_at", UtcTime(), nullable=True),
        sa.Column("opened_at", UtcTime(), nullable=True),
        sa.Column("acts", sa.Integer(), nullable=False),
    )
    op.create_index("ix_review_links_review", "review_links", ["review"])


def downgrade() -> None:
    op.drop_table("review_links")
