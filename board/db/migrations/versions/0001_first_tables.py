"""The first tables: tasks, their history, types, connections, effects, reviews, people.

Revision ID: 0001
Revises:
"""

import sqlalchemy as sa
from alembic import op

from board.db.schema import BigId
from board.db.types import JsonText, UtcTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


# The board's clock; tests replace the first function. clock_timestamp(), not now(): a transaction that waited for a
# lock must not write a time from before its wait. STABLE, not VOLATILE: a volatile function cannot bound an index scan.
CLOCK = """
CREATE FUNCTION board_now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT clock_timestamp()';
CREATE FUNCTION board_now(plus double precision) RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT board_now() + make_interval(secs => plus)';
"""


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(CLOCK)
    op.create_table(
        "api_keys",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("hint", sa.String(length=12), nullable=False),
        sa.Column("scopes", JsonText(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("revoked_at", UtcTime(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
        sa.UniqueConstraint("secret_hash"),
    )
    op.create_table(
        "board_meta",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.Column("set_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "connections",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("options", JsonText(), nullable=False),
        sa.Column("secrets", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.Column("updated_by", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "retired_ids",
        sa.Column("task_id", sa.String(length=200), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("retired_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("task_id"),
    )
    op.create_table(
        "task_types",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("current", sa.Boolean(), nullable=False),
        sa.Column("spec", JsonText(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("created_by", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name", "version"),
    )
    op.create_table(
        "tasks",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("task_id", sa.String(length=200), nullable=False),
        sa.Column("type", sa.String(length=120), nullable=False),
        sa.Column("type_version", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("phase", sa.String(length=8), nullable=False),
        sa.Column("has_action", sa.Boolean(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("lane", sa.Integer(), nullable=False),
        sa.Column("lane_since", UtcTime(), nullable=False),
        sa.Column("ready_at", UtcTime(), nullable=False),
        sa.Column("unmet_needs", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(), nullable=True),
        sa.Column("lease_token", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", UtcTime(), nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("retry_count", sa.Integer(), nullable=False),
        sa.Column("crash_count", sa.Integer(), nullable=False),
        sa.Column("suspect", sa.Boolean(), nullable=False),
        sa.Column("max_retries", sa.Integer(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("error_class", sa.String(length=16), nullable=True),
        sa.Column("error_cause", sa.String(length=32), nullable=True),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("event_seq", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("tags", JsonText(), nullable=False),
        sa.Column("callback_url", sa.Text(), nullable=True),
        sa.Column("requester", sa.String(length=200), nullable=False),
        sa.Column("assignee", sa.String(length=200), nullable=True),
        sa.Column("run_after", UtcTime(), nullable=True),
        sa.Column("due_at", UtcTime(), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("started_at", UtcTime(), nullable=True),
        sa.Column("finished_at", UtcTime(), nullable=True),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("task_id"),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.create_index("ix_tasks_created", ["created_at", "id"], unique=False)
        batch_op.create_index(
            "ix_tasks_leases",
            ["lease_until"],
            unique=False,
            sqlite_where=sa.text("status = 'running'"),
            postgresql_where=sa.text("status = 'running'"),
        )
        batch_op.create_index(
            "ix_tasks_ready",
            ["lane", "ready_at", "id"],
            unique=False,
            sqlite_where=sa.text("status IN ('pending', 'retrying')"),
            postgresql_where=sa.text("status IN ('pending', 'retrying')"),
        )
        batch_op.create_index("ix_tasks_status_created", ["status", "created_at", "id"], unique=False)
        batch_op.create_index(
            "ix_tasks_suspects",
            ["ready_at"],
            unique=False,
            sqlite_where=sa.text("suspect"),
            postgresql_where=sa.text("suspect"),
        )
        batch_op.create_index(
            "ix_tasks_grace",
            ["ready_at"],
            unique=False,
            sqlite_where=sa.text("status = 'pending' AND phase = 'act'"),
            postgresql_where=sa.text("status = 'pending' AND phase = 'act'"),
        )
        batch_op.create_index("ix_tasks_type_status", ["type", "status", "id"], unique=False)
        batch_op.create_index("ix_tasks_updated", ["updated_at", "id"], unique=False)

    op.create_table(
        "users",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("email", sa.String(length=200), nullable=False),
        sa.Column("role", sa.String(length=12), nullable=False),
        sa.Column("password_hash", sa.String(), nullable=True),
        sa.Column("lang", sa.String(length=8), nullable=True),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("email"),
    )
    op.create_table(
        "attempts",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("task", BigId, autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("phase", sa.String(length=8), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(length=200), nullable=False),
        sa.Column("type_version", sa.Integer(), nullable=False),
        sa.Column("started_at", UtcTime(), nullable=False),
        sa.Column("finished_at", UtcTime(), nullable=True),
        sa.Column("outcome", sa.String(length=20), nullable=True),
        sa.Column("error_class", sa.String(length=16), nullable=True),
        sa.Column("error_cause", sa.String(length=32), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("rule", sa.String(length=80), nullable=True),
        sa.Column("instruction", sa.Text(), nullable=True),
        sa.Column("output", JsonText(), nullable=True),
        sa.Column("raw_text", sa.Text(), nullable=True),
        sa.Column("tokens", sa.BigInteger(), nullable=True),
        sa.Column("cost", sa.String(length=40), nullable=True),
        sa.Column("reference", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("task", "number"),
    )
    op.create_table(
        "operations",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("task", BigId, nullable=True),
        sa.Column("task_id", sa.String(length=200), nullable=True),
        sa.Column("phase", sa.String(length=8), nullable=True),
        sa.Column("lease_token", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("connection", sa.String(length=120), nullable=True),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("request_hash", sa.String(length=64), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("status", sa.String(length=12), nullable=False),
        sa.Column("external_reference", sa.Text(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("next_try_at", UtcTime(), nullable=True),
        sa.Column("give_up_at", UtcTime(), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("sent_at", UtcTime(), nullable=True),
        sa.Column("closed_at", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"], ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key"),
    )
    with op.batch_alter_table("operations", schema=None) as batch_op:
        batch_op.create_index(
            "ix_operations_open",
            ["status", "id"],
            unique=False,
            sqlite_where=sa.text("status IN ('sent', 'unknown')"),
            postgresql_where=sa.text("status IN ('sent', 'unknown')"),
        )
        batch_op.create_index(
            "ix_operations_outbox",
            ["next_try_at"],
            unique=False,
            sqlite_where=sa.text("next_try_at IS NOT NULL"),
            postgresql_where=sa.text("next_try_at IS NOT NULL"),
        )
        batch_op.create_index("ix_operations_task", ["task", "id"], unique=False)

    op.create_table(
        "sessions",
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("user", BigId, nullable=False),
        sa.Column("csrf", sa.String(length=64), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("expires_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["user"], ["users.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("token_hash"),
    )
    with op.batch_alter_table("sessions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_sessions_user"), ["user"], unique=False)

    op.create_table(
        "setup_links",
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("user", BigId, nullable=True),
        sa.Column("expires_at", UtcTime(), nullable=False),
        sa.Column("used_at", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(["user"], ["users.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("token_hash"),
    )
    op.create_table(
        "task_data",
        sa.Column("task", BigId, autoincrement=False, nullable=False),
        sa.Column("payload", JsonText(), nullable=False),
        sa.Column("payload_hash", sa.String(length=64), nullable=False),
        sa.Column("origin", JsonText(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("result", JsonText(), nullable=True),
        sa.Column("judgement", JsonText(), nullable=True),
        sa.Column("instruction", sa.Text(), nullable=True),
        sa.Column("former_output", JsonText(), nullable=True),
        sa.Column("decision", JsonText(), nullable=True),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("task"),
    )
    op.create_table(
        "task_events",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("task", BigId, autoincrement=False, nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", UtcTime(), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("from_status", sa.String(length=16), nullable=True),
        sa.Column("to_status", sa.String(length=16), nullable=True),
        sa.Column("actor_kind", sa.String(length=16), nullable=False),
        sa.Column("actor_name", sa.String(length=200), nullable=False),
        sa.Column("channel", sa.String(length=16), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("data", JsonText(), nullable=True),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("task", "seq"),
    )
    with op.batch_alter_table("task_events", schema=None) as batch_op:
        batch_op.create_index("ix_task_events_at", ["at", "id"], unique=False)

    op.create_table(
        "deliveries",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("operation", BigId, nullable=False),
        sa.Column("at", UtcTime(), nullable=False),
        sa.Column("milliseconds", sa.Integer(), nullable=False),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("outcome", sa.String(length=12), nullable=False),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["operation"], ["operations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_deliveries_operation"), ["operation"], unique=False)

    op.create_table(
        "reviews",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("task", BigId, nullable=False),
        sa.Column("reason", sa.String(length=24), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("status", sa.String(length=12), nullable=False),
        sa.Column("risk", sa.String(length=8), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("content_hash", sa.String(length=64), nullable=False),
        sa.Column("operation", BigId, nullable=True),
        sa.Column("due_at", UtcTime(), nullable=True),
        sa.Column("opened_at", UtcTime(), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=True),
        sa.Column("decided_version", sa.Integer(), nullable=True),
        sa.Column("decided_at", UtcTime(), nullable=True),
        sa.Column("decider_kind", sa.String(length=16), nullable=True),
        sa.Column("decider", sa.String(length=200), nullable=True),
        sa.Column("channel", sa.String(length=16), nullable=True),
        sa.Column("instruction", sa.Text(), nullable=True),
        sa.Column("decision_reason", sa.Text(), nullable=True),
        sa.Column("reason_class", sa.String(length=16), nullable=True),
        sa.Column("idempotency_key", sa.String(length=200), nullable=True),
        sa.Column("undo_until", UtcTime(), nullable=True),
        sa.Column("data", JsonText(), nullable=True),
        sa.ForeignKeyConstraint(["operation"], ["operations.id"], ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("reviews", schema=None) as batch_op:
        batch_op.create_index("ix_reviews_decided", ["decided_at", "id"], unique=False)
        batch_op.create_index(
            "ix_reviews_open",
            ["due_at", "id"],
            unique=False,
            sqlite_where=sa.text("status = 'open'"),
            postgresql_where=sa.text("status = 'open'"),
        )
        batch_op.create_index("ix_reviews_task", ["task", "id"], unique=False)
        batch_op.create_index(
            "ux_reviews_one_open",
            ["task"],
            unique=True,
            sqlite_where=sa.text("status = 'open'"),
            postgresql_where=sa.text("status = 'open'"),
        )


def downgrade() -> None:
    with op.batch_alter_table("reviews", schema=None) as batch_op:
        batch_op.drop_index(
            "ux_reviews_one_open", sqlite_where=sa.text("status = 'open'"), postgresql_where=sa.text("status = 'open'")
        )
        batch_op.drop_index("ix_reviews_task")
        batch_op.drop_index(
            "ix_reviews_open", sqlite_where=sa.text("status = 'open'"), postgresql_where=sa.text("status = 'open'")
        )
        batch_op.drop_index("ix_reviews_decided")

    op.drop_table("reviews")
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_deliveries_operation"))

    op.drop_table("deliveries")
    with op.batch_alter_table("task_events", schema=None) as batch_op:
        batch_op.drop_index("ix_task_events_at")

    op.drop_table("task_events")
    op.drop_table("task_data")
    op.drop_table("setup_links")
    with op.batch_alter_table("sessions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_sessions_user"))

    op.drop_table("sessions")
    with op.batch_alter_table("operations", schema=None) as batch_op:
        batch_op.drop_index("ix_operations_task")
        batch_op.drop_index(
            "ix_operations_outbox",
            sqlite_where=sa.text("next_try_at IS NOT NULL"),
            postgresql_where=sa.text("next_try_at IS NOT NULL"),
        )
        batch_op.drop_index(
            "ix_operations_open",
            sqlite_where=sa.text("status IN ('sent', 'unknown')"),
            postgresql_where=sa.text("status IN ('sent', 'unknown')"),
        )

    op.drop_table("operations")
    op.drop_table("attempts")
    op.drop_table("users")
    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.drop_index("ix_tasks_updated")
        batch_op.drop_index("ix_tasks_suspects", sqlite_where=sa.text("suspect"), postgresql_where=sa.text("suspect"))
        batch_op.drop_index(
            "ix_tasks_grace",
            sqlite_where=sa.text("status = 'pending' AND phase = 'act'"),
            postgresql_where=sa.text("status = 'pending' AND phase = 'act'"),
        )
        batch_op.drop_index("ix_tasks_type_status")
        batch_op.drop_index("ix_tasks_status_created")
        batch_op.drop_index(
            "ix_tasks_ready",
            sqlite_where=sa.text("status IN ('pending', 'retrying')"),
            postgresql_where=sa.text("status IN ('pending', 'retrying')"),
        )
        batch_op.drop_index(
            "ix_tasks_leases",
            sqlite_where=sa.text("status = 'running'"),
            postgresql_where=sa.text("status = 'running'"),
        )
        batch_op.drop_index("ix_tasks_created")

    op.drop_table("tasks")
    op.drop_table("task_types")
    op.drop_table("retired_ids")
    op.drop_table("connections")
    op.drop_table("board_meta")
    op.drop_table("api_keys")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION board_now(double precision)")
        op.execute("DROP FUNCTION board_now()")
