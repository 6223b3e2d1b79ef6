"""Weekly reports as they were, who wants them by mail, and what became of each mail.

Revision ID: 0029
Revises: 0028
"""

import sqlalchemy as sa
from alembic import op

from board.db.types import JsonText, UtcTime

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "reports",
        sa.Column("week", sa.String(length=8), nullable=False),
        sa.Column("as_of", UtcTime(), nullable=False),
        sa.Column("figures", JsonText(), nullable=False),
        sa.PrimaryKeyConstraint("week"),
    )
    op.create_table(
        "report_readers",
        sa.Column("person", sa.String(length=254), nullable=False),
        sa.Column("wanted", sa.Boolean(), nullable=False),
        sa.Column("zone", sa.String(length=64), nullable=True),
        sa.Column("changed_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("person"),
    )
    op.create_table(
        "report_deliveries",
        sa.Column("week", sa.String(length=8), nullable=False),
        sa.Column("person", sa.String(length=254), nullable=False),
        sa.Column("status", sa.String(length=12), nullable=False),
        sa.Column("sendings", sa.Integer(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.String(length=300), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("asked_by", sa.String(length=200), nullable=False),
        sa.Column("next_try_at", UtcTime(), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("sent_at", UtcTime(), nullable=True),
        sa.Column("closed_at", UtcTime(), nullable=True),
        sa.PrimaryKeyConstraint("week", "person"),
    )


def downgrade() -> None:
    for name in ("report_deliveries", "report_readers", "reports"):
        op.drop_table(name)
