"""The migrations make the very schema that the code describes, can be taken back, and may be started twice at once."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect

from board.db import migrate
from board.db.engine import normal_url
from board.db.migrate import SchemaError, check, downgrade, upgrade
from board.db.models import metadata


def looked_at(url: str, look: Any) -> Any:
    """What `look(connection)` gives on a connection of its own."""
    engine = create_engine(normal_url(url))
    try:
        with engine.connect() as connection:
            return look(connection)
    finally:
        engine.dispose()


def shape(connection: Connection) -> dict[str, Any]:
    """Every table with its columns, indexes and foreign keys, as text that can be compared."""
    inspector = inspect(connection)

    def plain(value: Any) -> str:
        return str({name: plain(part) for name, part in value.items()}) if isinstance(value, dict) else str(value)

    def by_name(rows: Any) -> list[str]:
        return sorted(plain(dict(sorted(row.items()))) for row in rows)

    return {
        table: [
            by_name(ask(table)) for ask in (inspector.get_columns, inspector.get_indexes, inspector.get_foreign_keys)
        ]
        for table in inspector.get_table_names()
        if table != "alembic_version"
    }


def differences(connection: Connection) -> list[Any]:
    context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
    return list(compare_metadata(context, metadata))


def test_up_down_and_up_again(empty_database_url: str) -> None:
    upgrade(empty_database_url)
    first = looked_at(empty_database_url, shape)
    assert set(first) == set(metadata.tables)
    downgrade(empty_database_url, "base")
    assert looked_at(empty_database_url, shape) == {}
    upgrade(empty_database_url)
    assert looked_at(empty_database_url, shape) == first


# What is computed is told to each database in its own words, which Alembic does not compare.
@pytest.mark.filterwarnings("ignore:Computed default on reviews")
def test_the_code_and_the_migrations_agree(database_url: str) -> None:
    assert looked_at(database_url, differences) == []


def test_the_names_of_the_files_tell_the_revisions() -> None:
    scripts = ScriptDirectory(str(Path(migrate.__file__).parent / "migrations"))
    assert {it.revision for it in scripts.walk_revisions()} == migrate.known()
    assert scripts.get_current_head() == migrate.newest()


def test_a_database_without_the_schema_is_refused_by_name_of_the_remedy(empty_database_url: str) -> None:
    with pytest.raises(SchemaError, match="board migrate"):
        looked_at(empty_database_url, check)
    upgrade(empty_database_url)
    looked_at(empty_database_url, check)


def test_several_processes_may_migrate_at_once(empty_database_url: str, pytestconfig: pytest.Config) -> None:
    command = [sys.executable, "-c", "import sys; from board.db.migrate import upgrade; upgrade(sys.argv[1])"]
    running = [
        subprocess.Popen(
            [*command, empty_database_url], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=pytestconfig.rootpath
        )
        for _ in range(3)
    ]
    said = [process.communicate(timeout=60)[0].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], said
    looked_at(empty_database_url, check)
