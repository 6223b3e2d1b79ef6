"""The database fixtures give each test a fresh, migrated database of its own, and servers that can fail."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
import redis
from sqlalchemy import create_engine, inspect, text

from board.db.clock import read_now
from board.db.engine import Database, normal_url
from board.tasks.ledger import Ledger
from tests.heart import CALLER, new_task, settable_clock
from tests.rig.postgres import PostgresServer, copy_wheel, wheel_package
from tests.rig.valkey import ValkeyServer


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_has_a_migrated_database_of_its_own(database_url: str, turn: int) -> None:
    engine = create_engine(normal_url(database_url))
    with engine.begin() as connection:
        assert "tasks" in inspect(connection).get_table_names()
        connection.execute(text("CREATE TABLE left_by_another_test (id int)"))  # fails where it is there already
    engine.dispose()


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_nothing_of_a_test_reaches_the_next_one(database_url: str, turn: int) -> None:
    """Rows, ids, the clock and open connections."""
    db = Database(database_url)
    ledger = Ledger()
    with db.write() as tx:
        assert abs((read_now(tx) - datetime.now(UTC)).total_seconds()) < 60
        assert tx.execute(text("SELECT count(*) FROM tasks")).scalar_one() == 0
        assert ledger.create(tx, [new_task("T-1")], CALLER) == {"T-1": 1}
        if not db.is_sqlite:
            others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
            assert tx.execute(text(others + "pg_backend_pid()")).scalar_one() == 0
    with settable_clock(db) as at:
        at(86_400)
    # Not closed: its connections stay open as long as anybody remembers it.
    test_nothing_of_a_test_reaches_the_next_one.__dict__.setdefault("left", []).append(db)


def test_an_empty_database_has_no_table(empty_database_url: str) -> None:
    engine = create_engine(normal_url(empty_database_url))
    assert inspect(engine).get_table_names() == []
    engine.dispose()


def test_a_stopped_postgres_breaks_connections_and_comes_back_with_its_data(postgres_server: PostgresServer) -> None:
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (id int)")
        connection.execute("CHECKPOINT")
        postgres_server.stop()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    postgres_server.start()
    with psycopg.connect(postgres_server.url()) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_redis_starts_empty(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert client.set("board-test", "1", ex=60)
        assert client.get("board-test") == b"1"


def test_a_frozen_valkey_does_not_answer_and_a_stopped_one_refuses(valkey_server: ValkeyServer) -> None:
    with redis.Redis.from_url(valkey_server.url, socket_timeout=0.2, retry=None) as client:
        valkey_server.freeze()
        with pytest.raises(redis.TimeoutError):
            client.ping()
        valkey_server.thaw()
        assert client.ping()
        valkey_server.stop()
        with pytest.raises(redis.ConnectionError):
            client.ping()
        valkey_server.start()
        assert client.ping()


def test_the_copied_wheel_runs(tmp_path: Path) -> None:
    """Needed where the virtual environment is closed to the server's user, such as in root's home."""
    package = copy_wheel(wheel_package(), tmp_path / "wheel")
    shown = subprocess.run([package / "pginstall/bin/initdb", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("initdb (PostgreSQL)")
