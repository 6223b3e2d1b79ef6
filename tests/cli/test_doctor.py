"""`board doctor`: says in plain words what is wrong, changes nothing, and its exit code tells."""

import re
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from board.access.crypto import new_key
from board.db import place
from board.db.clock import read_now
from board.db.engine import Database
from board.effects import breaker
from board.files.identity import Identity
from board.files.local import LocalStorage
from board.queue import budget
from board.queue.usage import Now
from board.redis_door import connect
from tests.cli.conftest import Run
from tests.rig.valkey import ValkeyServer


def found(answer: Any) -> dict[str, tuple[str, str]]:
    """what → (status, message); of several about one thing the last."""
    return {it["what"]: (it["status"], it["message"]) for it in answer.json["data"]}


def test_a_good_board_is_good(board: Run, database_url: str) -> None:
    answer = board("doctor", "--json")
    assert answer.code == 0
    assert answer.json["ok"] is True
    kinds = {"settings", "data folder", "database", "schema", "key", "storage"}
    assert set(found(answer)) == (kinds if database_url.startswith("sqlite") else kinds | {"clock"})
    assert {it["status"] for it in answer.json["data"]} == {"ok"}
    kind = "SQLite" if database_url.startswith("sqlite") else "PostgreSQL"
    assert found(answer)["database"][1].startswith(kind)
    said = board("doctor")
    assert said.out.splitlines()[0].split() == ["WHAT", "STATUS", "FOUND"]


def test_looking_makes_nothing(run: Run, tmp_path: Path) -> None:
    answer = run("doctor", "--json")
    assert answer.code == 1
    assert found(answer)["database"][0] == "wrong"
    assert "board migrate" in found(answer)["database"][1]
    assert found(answer)["data folder"] == ("ok", f"{tmp_path / 'data'} is made at the first start.")
    assert list(tmp_path.iterdir()) == []


def test_every_wrong_setting_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOARD_LEASE", "soon")
    monkeypatch.setenv("BOARD_TIMEZONE", "Mars")
    answer = run("doctor")
    assert answer.code == 1
    assert "BOARD_LEASE: " in answer.out
    assert "BOARD_TIMEZONE: " in answer.out


def test_unknown_names_are_warnings(board: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOARD_COLOUR", "red")
    answer = board("doctor", "--json")
    assert answer.code == 0
    [warning] = [it["message"] for it in answer.json["data"] if it["status"] == "warning"]
    assert "BOARD_COLOUR" in warning


def test_a_redis_that_is_good(board: Run, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOARD_REDIS_URL", redis_url)
    status, message = found(board("doctor", "--json"))["redis"]
    assert status == "ok"
    assert re.fullmatch(r"(Redis|Valkey) \d+\.\d+\.\d+ answers and takes writes\.", message)


def test_a_redis_that_is_not_is_a_warning_in_plain_words(
    board: Run, valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work goes on without it, so nothing of this is wrong enough for exit code 1."""

    def warned() -> str:
        answer = board("doctor", "--json")
        status, message = found(answer)["redis"]
        assert (answer.code, status) == (0, "warning"), message
        return message

    monkeypatch.setenv("BOARD_REDIS_URL", valkey_server.url)
    with connect(valkey_server.url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        assert "maxmemory-policy is allkeys-lru" in warned()
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 1)
        assert "memory is full" in warned()
        client.config_set("maxmemory", 0)
        client.replicaof("127.0.0.1", 1)
        assert "read-only replica" in warned()
        client.replicaof("NO", "ONE")
        client.config_set("requirepass", "right")
    assert "refuses the name or password" in warned()
    monkeypatch.setenv("BOARD_REDIS_URL", valkey_server.url.replace("//", "//:s3cret@"))
    assert "refuses the name or password" in warned()
    valkey_server.freeze()
    assert "did not answer within" in warned()
    valkey_server.stop()
    assert "cannot be reached" in (said := warned())
    assert "s3cret" not in said


def test_an_old_schema_is_wrong(board: Run, database_url: str) -> None:
    from board.db.engine import Database

    db = Database(database_url)
    with db.write() as tx:
        tx.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    db.close()
    answer = board("doctor", "--json")
    assert answer.code == 1
    assert found(answer)["schema"][0] == "wrong"
    assert "board migrate" in found(answer)["schema"][1]


def test_another_key_and_a_lost_one_are_wrong(board: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from board import settings
    from board.rooms import open_board

    open_board(settings.load()).close()
    assert found(board("doctor", "--json"))["key"][0] == "ok"
    (tmp_path / "data" / "encryption_key").chmod(0o644)
    assert found(board("doctor", "--json"))["key"][0] == "warning"
    (tmp_path / "data" / "encryption_key").unlink()
    assert found(board("doctor", "--json"))["key"][0] == "wrong"
    monkeypatch.setenv("BOARD_ENCRYPTION_KEY", new_key())
    answer = board("doctor", "--json")
    assert answer.code == 1
    assert "another encryption key" in found(answer)["key"][1]


def test_a_database_that_does_not_answer_is_wrong_without_its_password(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOARD_DATABASE_URL", "postgresql://user:topsecret@127.0.0.1:1/board")
    answer = run("doctor")
    assert answer.code == 1
    assert "Check BOARD_DATABASE_URL." in answer.out
    assert "topsecret" not in answer.out + answer.err


def test_a_data_folder_that_cannot_be_made_is_wrong(board: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOARD_DATA_DIR", "/proc/board")
    answer = board("doctor", "--json")
    assert answer.code == 1
    assert found(answer)["data folder"][0] == "wrong"


def test_sqlite_on_a_network_file_system_is_wrong_and_no_process_starts(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:44 / {tmp_path}/data rw - nfs4 server:/x rw\n")
    monkeypatch.setattr(place, "MOUNTS", mounts)
    answer = run("doctor")
    assert answer.code == 1
    assert "network file system (nfs4)" in answer.out
    for role in ("up", "api", "worker"):
        refused = run(role, *(() if role == "worker" else ("--port", "0")))
        assert refused.code == 1
        assert "network file system (nfs4)" in refused.err
        assert "PostgreSQL" in refused.err
    assert not (tmp_path / "data").exists()


def test_a_type_that_is_hardly_meant_so_is_a_warning(board: Run, tmp_path: Path) -> None:
    (tmp_path / "types.yaml").write_text(
        "types: [{name: trial, handler: {use: echo}, review: {when: rules}}, {name: good, handler: {use: echo}}]"
    )
    applied = board("types", "apply", "types.yaml")
    assert (applied.code, applied.out) == (0, "created: type trial\ncreated: type good\n")
    assert "has no rules" in applied.err
    assert len(board("types", "apply", "types.yaml", "--json").json["warnings"]) == 1
    answer = board("doctor", "--json")
    assert answer.code == 0
    said = [it["message"] for it in answer.json["data"] if it["status"] == "warning"]
    assert said == ["The type trial says `review: {when: rules}` and has no rules, so nobody is asked by it."]


def test_connections_are_looked_at(board: Run, tmp_path: Path) -> None:
    board("connections", "set", "leads", "--kind", "dify", "--url", "http://127.0.0.1:9/v1", "--key", "app-0123456789")
    answer = board("doctor", "--json")
    assert answer.code == 1
    status, message = found(answer)["connection leads"]
    assert status == "wrong"
    assert "cannot be reached" in message


def test_a_storage_that_is_not_the_boards_is_wrong(
    board: Run, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = Database(database_url)
    Identity(db, LocalStorage(tmp_path / "data" / "files")).check()
    db.close()
    assert found(board("doctor", "--json"))["storage"] == (
        "ok",
        f"Files are in the folder {tmp_path / 'data' / 'files'}.",
    )
    monkeypatch.setenv("BOARD_STORAGE_URL", f"file://{tmp_path / 'other'}")
    answer = board("doctor", "--json")
    assert answer.code == 1
    assert found(answer)["storage"][0] == "wrong"
    assert "BOARD_STORAGE_URL" in found(answer)["storage"][1]
    assert not (tmp_path / "other").exists(), "looking makes nothing"


@pytest.mark.parametrize("url", ["", "files", "ftp://x", "file://host/share"])
def test_an_address_of_a_storage_that_cannot_be_used_is_named(
    run: Run, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOARD_STORAGE_URL", url)
    answer = run("doctor")
    assert answer.code == 1
    assert "BOARD_STORAGE_URL: " in answer.out


def test_an_address_that_others_cannot_call_back_is_a_warning(
    board: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "types.yaml").write_text(
        "connections: [{name: n8n, kind: webhook, url: 'https://n8n.example.org/webhook/x', secret: s}]\n"
        "types: [{name: flow, handler: {use: n8n.webhook, connection: n8n}}]\n"
    )
    assert board("types", "apply", "types.yaml").code == 0
    status, message = found(board("doctor", "--json"))["type"]
    assert status == "warning"
    assert "What flow starts is told to call back at http://127.0.0.1:8000" in message
    assert "BOARD_PUBLIC_URL" in message
    monkeypatch.setenv("BOARD_PUBLIC_URL", "https://board.example.org")
    assert "type" not in found(board("doctor", "--json"))


def test_a_bucket_without_a_name_is_wrong(board: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOARD_STORAGE_URL", "s3://")
    assert found(board("doctor", "--json"))["storage"][0] == "wrong"
    answer = board("up", "--port", "0")
    assert answer.code in (1, 2)
    assert "BOARD_STORAGE_URL: must name a bucket" in answer.err


def test_a_connection_that_is_shut_is_told(board: Run, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaker, "FAILURES", 1)
    db = Database(database_url)
    try:
        with db.write() as tx:
            breaker.failed(tx, "leads", "Nobody answers.")
    finally:
        db.close()
    answer = board("doctor", "--json")
    status, message = found(answer)["connection leads"]
    assert (answer.code, status) == (0, "warning")
    assert "Nobody answers." in message


def test_a_type_that_has_used_up_its_tokens_of_the_day(board: Run, database_url: str, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("types: [{name: lead, handler: {use: echo}, limits: {tokens_per_day: 100}}]")
    assert board("types", "apply", str(tmp_path / "t.yaml")).code == 0
    db = Database(database_url)
    with db.write() as tx:
        budget.spend(tx, "lead", 100, Now(read_now(tx), ZoneInfo("UTC")))
    db.close()
    answer = board("doctor", "--json")
    assert answer.code == 0
    assert found(answer)["type lead"][0] == "warning"
    assert "The 100 tokens of the type lead for today are used up" in found(answer)["type lead"][1]
