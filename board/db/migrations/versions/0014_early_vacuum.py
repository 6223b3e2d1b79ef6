"""PostgreSQL vacuums the tables of which a queue is made after a few thousand dead rows, however large they are.

Why these numbers: docs/decisions/0022-early-vacuum.md. SQLite has no dead rows.

Revision ID: 0014
Revises: 0013
"""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_TABLES = ("tasks", "operations")
_SETTINGS = {
    "autovacuum_vacuum_threshold": "5000",
    "autovacuum_vacuum_scale_factor": "0.005",
    "vacuum_index_cleanup": "on",
}


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        given = ", ".join(f"{name} = {value}" for name, value in _SETTINGS.items())
        for table in _TABLES:
            op.execute(f"ALTER TABLE {table} SET ({given})")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table in _TABLES:
            op.execute(f"ALTER TABLE {table} RESET ({', '.join(_SETTINGS)})")
