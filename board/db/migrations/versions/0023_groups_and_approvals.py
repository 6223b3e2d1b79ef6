"""Groups of people and keys, and reviews that take several approvals.

Revision ID: 0023
Revises: 0022
"""

import sqlalchemy as sa
from alembic import op

from board.db.schema import BigId
from board.db.types import UtcTime

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "groups",
        sa.Column("id", BigId, nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "group_members",
        sa.Column("group", BigId, autoincrement=False, nullable=False),
        sa.Column("member", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(["group"], ["groups.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("group", "member"),
    )
    op.create_index(op.f("ix_group_members_member"), "group_members", ["member"])
    op.create_table(
        "approvals",
        sa.Column("review", BigId, autoincrement=False, nullable=False),
        sa.Column("approver", sa.String(length=200), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["review"], ["reviews.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("review", "approver"),
    )


def downgrade() -> None:
    op.drop_table("approvals")
    op.drop_index(op.f("ix_group_members_member"), table_name="group_members")
    op.drop_table("group_members")
    op.drop_table("groups")
