"""`board backup` and `board restore`: whole, never over anything, never under a running board."""

import gc
import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from board.access.crypto import new_key
from board.db.migrate import downgrade, newest
from tests.cli.conftest import Run
from tests.rig.board import RunBoard, StartBoard

TYPE = "types: [{name: trial, handler: {use: echo}}]"


@pytest.fixture
def home(run: Run, tmp_path: Path) -> Run:
    """The command on a board of its own in this folder, with three tasks."""
    assert run("migrate").code == 0
    (tmp_path / "types.yaml").write_text(TYPE)
    assert run("types", "apply", "types.yaml").code == 0
    submit(run, "T-1", "T-2", "T-3")
    return run


def submit(run: Run, *ids: str) -> None:
    Path("tasks.json").write_text(json.dumps([{"type": "trial", "task_id": id_} for id_ in ids]))
    assert run("submit", "tasks.json").code == 0
    gc.collect()  # the command has ended, and in this process only that closes its connections


def ids(run: Run) -> list[str]:
    listed = run("tasks", "--json").json["data"]
    gc.collect()
    return sorted(task["task_id"] for task in listed)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_there_and_back(home: Run, tmp_path: Path) -> None:
    made = home("backup", "one.db")
    assert made.code == 0
    assert made.out.startswith("one.db holds the database (")
    assert "encryption_key" in made.err
    assert (tmp_path / "one.db").stat().st_mode & 0o777 == 0o600
    submit(home, "T-4")
    done = home("restore", "one.db")
    assert done.code == 0
    assert ids(home) == ["T-1", "T-2", "T-3"]
    (kept,) = (tmp_path / "data").glob("board.db.before-*")
    assert f"kept as {kept}" in done.err
    with closing(sqlite3.connect(kept)) as former:
        assert former.execute("SELECT count(*) FROM tasks").fetchone() == (4,)
    assert home("doctor").code == 0
    submit(home, "T-5")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "one.db", "tasks.json", "types.yaml"]


def test_into_an_empty_folder_with_the_key(home: Run, tmp_path: Path) -> None:
    assert home("backup", "one.db", "--json").json == {"file": "one.db", "bytes": os.stat("one.db").st_size}
    (tmp_path / "data").rename("data.before")
    missing = home("restore", "one.db")
    assert missing.code == 1
    assert "does not exist" in missing.err
    assert contents(tmp_path / "data") == {}
    (tmp_path / "data" / "encryption_key").write_text((tmp_path / "data.before" / "encryption_key").read_text())
    done = home("restore", "one.db", "--json").json
    assert done == {
        "database": str(tmp_path / "data" / "board.db"),
        "kept": None,
        "schema": newest(),
        "needs_migration": False,
    }
    assert ids(home) == ["T-1", "T-2", "T-3"]


def test_nothing_is_overwritten(home: Run, tmp_path: Path) -> None:
    (tmp_path / "one.db").write_text("mine")
    refused = home("backup", "one.db")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == "one.db exists already, and nothing is overwritten; name another file.\n"
    assert (tmp_path / "one.db").read_text() == "mine"
    assert home("backup", "nowhere/one.db").code == 1
    assert home("backup", "data").code == 1


def test_a_file_that_somebody_makes_meanwhile_is_not_overwritten(
    home: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from board import backup

    def slow(source: Path, target: Path) -> None:
        (tmp_path / "one.db").write_text("mine")
        target.write_text("the copy")

    monkeypatch.setattr(backup, "_copy", slow)
    assert home("backup", "one.db").code == 1
    assert (tmp_path / "one.db").read_text() == "mine"
    assert not list(tmp_path.glob(".*"))


def test_a_backup_is_one_moment_while_others_write(home: Run, tmp_path: Path) -> None:
    """Each transaction writes two rows that belong together, and makes the file grow."""
    with closing(sqlite3.connect(tmp_path / "data" / "board.db")) as setup:
        setup.execute("CREATE TABLE one (n INTEGER, text TEXT)")
        setup.execute("CREATE TABLE two (n INTEGER, text TEXT)")
    over, begun = threading.Event(), threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(tmp_path / "data" / "board.db", isolation_level=None, timeout=30)) as connection:
            number = 0
            while not over.is_set():
                number += 1
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("INSERT INTO one VALUES (?, ?)", (number, "x" * 5000))
                connection.execute("INSERT INTO two VALUES (?, ?)", (number, "y" * 5000))
                connection.execute("COMMIT")
                begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert begun.wait(30)
        seen = []
        for number in range(4):
            assert home("backup", f"{number}.db").code == 0
            with closing(sqlite3.connect(tmp_path / f"{number}.db")) as made:
                one, two = (made.execute(f"SELECT count(*), max(n) FROM {name}").fetchone() for name in ("one", "two"))
                assert one == two
                assert one[0] == one[1] > 0
                assert made.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                seen.append(one[0])
        assert seen == sorted(seen)
        assert seen[0] < seen[-1], "it was written to all the time"
    finally:
        over.set()
        writer.join()


@pytest.fixture
def refused(home: Run, tmp_path: Path) -> Iterator[None]:
    """Whatever the test tries, nothing in the data folder is changed."""
    assert home("backup", "one.db").code == 0
    before = contents(tmp_path / "data")
    yield
    assert contents(tmp_path / "data") == before


def test_another_key_is_refused(home: Run, refused: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOARD_ENCRYPTION_KEY", new_key())
    answer = home("restore", "one.db")
    assert answer.code == 1
    assert "another encryption key" in answer.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is no backup of a board"),
        (b"this is no database, however long it may be " * 100, "cannot be read as an SQLite database"),
        (None, "There is no file"),
    ],
)
def test_what_is_no_backup_is_refused(
    home: Run, refused: None, tmp_path: Path, content: bytes | None, words: str
) -> None:
    if content is not None:
        (tmp_path / "odd.db").write_bytes(content)
    answer = home("restore", "odd.db")
    assert (answer.code, answer.out) == (1, "")
    assert words in answer.err
    assert answer.err.count("\n") == 1


def test_a_damaged_file_is_refused(home: Run, refused: None, tmp_path: Path) -> None:
    whole = (tmp_path / "one.db").read_bytes()
    half = len(whole) // 2
    (tmp_path / "one.db").write_bytes(whole[:half] + b"\xff" * 8192 + whole[half + 8192 :])
    answer = home("restore", "one.db")
    assert answer.code == 1
    assert "damaged" in answer.err or "cannot be read" in answer.err


def test_a_schema_that_is_not_known_is_refused(home: Run, refused: None, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "one.db")) as made:
        made.execute("UPDATE alembic_version SET version_num = '9999'")
        made.commit()
    answer = home("restore", "one.db")
    assert answer.code == 1
    assert "schema 9999, which this program does not know" in answer.err


def test_an_older_schema_is_restored_and_wants_to_be_migrated(home: Run, tmp_path: Path) -> None:
    downgrade(f"sqlite:///{tmp_path}/data/board.db", "0003")
    assert home("backup", "old.db").code == 0
    done = home("restore", "old.db")
    assert done.code == 0
    assert "run `board migrate`" in done.err
    assert home("tasks").code == 1
    assert home("migrate").code == 0
    assert ids(home) == ["T-1", "T-2", "T-3"]


def test_a_damaged_database_is_put_aside(home: Run, tmp_path: Path) -> None:
    assert home("backup", "one.db").code == 0
    (tmp_path / "data" / "board.db").write_bytes(b"damaged beyond repair" * 1000)
    assert home("restore", "one.db").code == 0
    assert ids(home) == ["T-1", "T-2", "T-3"]
    (kept,) = (tmp_path / "data").glob("board.db.before-*")
    assert kept.read_bytes().startswith(b"damaged")


def test_postgresql_is_left_to_its_own_tools(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOARD_DATABASE_URL", "postgresql://user:topsecret@127.0.0.1:1/board")
    for command, tool in (("backup", "pg_dump --format=custom --file=one.db"), ("restore", "pg_restore")):
        answer = run(command, "one.db")
        assert (answer.code, answer.out) == (1, "")
        assert tool in answer.err
        assert "topsecret" not in answer.err
        assert answer.err.count("\n") == 1


@pytest.mark.parametrize("role", ["up", "worker"])
def test_a_running_board_is_backed_up_and_never_restored_onto(
    board_process: StartBoard, run_board: RunBoard, tmp_path: Path, role: str
) -> None:
    assert run_board("migrate").returncode == 0
    process = board_process(role)
    assert run_board("backup", "one.db").returncode == 0
    before = (tmp_path / "data" / "board.db").stat().st_ino
    refused = run_board("restore", "one.db")
    assert refused.returncode == 1
    assert "Stop every process of the board first" in refused.stderr
    assert (tmp_path / "data" / "board.db").stat().st_ino == before
    assert process.stop() == 0
    done = run_board("restore", "one.db")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "data").glob("board.db.before-*"))) == 1
    board_process(role)
