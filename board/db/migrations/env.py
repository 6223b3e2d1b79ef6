"""Alembic's entry: runs the migrations on the connection that board.db.migrate hands over."""

from alembic import context

from board.db.models import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True, compare_type=True)
with context.begin_transaction():
    context.run_migrations()
