"""What work has made is found again by what it follows from.

Revision ID: 0016
Revises: 0015
"""

import sqlalchemy as sa
from alembic import op

from board.db.types import JsonText

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_HAS_RECIPE = sa.text("recipe IS NOT NULL")


def upgrade() -> None:
    with op.batch_alter_table("files", schema=None, recreate="never") as batch_op:
        batch_op.add_column(sa.Column("recipe", sa.String(length=64), nullable=True))
        batch_op.add_column(sa.Column("facts", JsonText(), nullable=True))
        batch_op.create_index(
            "ix_files_recipe", ["recipe"], unique=False, sqlite_where=_HAS_RECIPE, postgresql_where=_HAS_RECIPE
        )


def downgrade() -> None:
    with op.batch_alter_table("files", schema=None, recreate="never") as batch_op:
        batch_op.drop_index("ix_files_recipe")
        batch_op.drop_column("facts")
        batch_op.drop_column("recipe")
