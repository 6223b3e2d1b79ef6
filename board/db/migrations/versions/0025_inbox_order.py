"""The order of the inbox stands in its rows, figures on decisions, who has a review open, and saved views.

Revision ID: 0025
Revises: 0024
"""

import json

import sqlalchemy as sa
from alembic import op

from board.db.schema import BigId
from board.db.types import JsonText, UtcTime

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

_OPEN = sa.text("status = 'open'")
_RISK = "CASE risk WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END"
_VERDICTS = ("approve", "revise", "reject")


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":  # it can add computed columns only where they are not stored
        due = "due_order VARCHAR(26) GENERATED ALWAYS AS (coalesce(due_at, '9999-01-01 00:00:00.000000')) VIRTUAL"
        risk = f"risk_order INTEGER GENERATED ALWAYS AS ({_RISK}) VIRTUAL"
    else:
        due = "due_order TIMESTAMPTZ GENERATED ALWAYS AS (coalesce(due_at, '9999-01-01 00:00:00+00')) STORED"
        risk = f"risk_order INTEGER GENERATED ALWAYS AS ({_RISK}) STORED"
    for column in (due, risk):
        op.execute(f"ALTER TABLE reviews ADD COLUMN {column}")
    op.add_column("reviews", sa.Column("lane", sa.Integer(), nullable=False, server_default="2"))
    op.add_column("reviews", sa.Column("proposed", sa.String(length=8), nullable=True))
    op.add_column("reviews", sa.Column("edited", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.execute("UPDATE reviews SET lane = (SELECT lane FROM tasks WHERE tasks.id = reviews.task) WHERE status = 'open'")
    op.execute("UPDATE reviews SET edited = true WHERE verdict = 'approve' AND data LIKE '%\"edits\"%'")
    _remember_what_was_proposed()
    op.create_index(
        "ix_reviews_inbox",
        "reviews",
        ["due_order", "risk_order", "lane", "id"],
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    )
    op.create_table(
        "review_openings",
        sa.Column("review", BigId, nullable=False, autoincrement=False),
        sa.Column("person", sa.String(length=200), nullable=False),
        sa.Column("opened_at", UtcTime(), nullable=False),
        sa.Column("seen_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["review"], ["reviews.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("review", "person"),
    )
    op.create_table(
        "views",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("owner", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("state", JsonText(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ux_views_name", "views", ["owner", "kind", "name"], unique=True)


def downgrade() -> None:
    op.drop_table("views")
    op.drop_table("review_openings")
    op.drop_index("ix_reviews_inbox", "reviews")
    for name in ("edited", "proposed", "lane", "risk_order", "due_order"):
        op.drop_column("reviews", name)


def _remember_what_was_proposed() -> None:
    """Of open reviews; the judgement that a decided one was about may be another one by now."""
    connection = op.get_bind()
    query = "SELECT reviews.id, task_data.judgement FROM reviews JOIN task_data ON task_data.task = reviews.task"
    for review, judgement in connection.execute(sa.text(f"{query} WHERE reviews.status = 'open'")).all():
        verdict = (json.loads(judgement) or {}).get("verdict") if judgement else None
        if verdict in _VERDICTS:
            update = sa.text("UPDATE reviews SET proposed = :verdict WHERE id = :id")
            connection.execute(update, {"verdict": verdict, "id": review})
