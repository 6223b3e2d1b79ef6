"""How many blocks of 8 kB PostgreSQL looks at for a statement: the same on a busy machine as on a quiet one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, event

from board.db.engine import Database


class Blocks:
    """counted: blocks of all statements since this was made."""

    def __init__(self) -> None:
        self.counted = 0

    def look(self, connection: Connection, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        """Run the statement once under EXPLAIN and take it back, before it runs in earnest."""
        if not statement.lstrip().upper().startswith(("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")):
            return
        raw = connection.connection.cursor()
        raw.execute("SAVEPOINT looked")
        raw.execute(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {statement}", parameters)
        row = raw.fetchone()
        assert row is not None
        plan = row[0][0]["Plan"]
        self.counted += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        raw.execute("ROLLBACK TO SAVEPOINT looked")
        raw.execute("RELEASE SAVEPOINT looked")
        raw.close()


@contextmanager
def blocks(db: Database) -> Iterator[Blocks]:
    """Counts for all that is executed on this database's connections meanwhile."""
    counting = Blocks()
    engines = (db._reader, db._writer)
    for engine in engines:
        event.listen(engine, "before_cursor_execute", counting.look)
    try:
        yield counting
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", counting.look)
