"""Files, and which task needs them.

Revision ID: 0013
Revises: 0012
"""

import sqlalchemy as sa
from alembic import op

from board.db.schema import BigId
from board.db.types import UtcTime

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "files",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("file_id", sa.String(length=40), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.String(length=120), nullable=False),
        sa.Column("requester", sa.String(length=200), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("file_id"),
    )
    op.create_index("ix_files_content", "files", ["sha256"])
    op.create_index("ix_files_created", "files", ["created_at", "id"])
    op.create_table(
        "file_uses",
        sa.Column("file", BigId, autoincrement=False, nullable=False),
        sa.Column("task", BigId, autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(["file"], ["files.id"]),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("file", "task"),
    )
    op.create_index("ix_file_uses_task", "file_uses", ["task"])


def downgrade() -> None:
    op.drop_table("file_uses")
    op.drop_table("files")
