"""What holds for every command: exit codes, one plain sentence on stderr, nothing secret in it."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from board.cli import COMMANDS, app
from board.cli.errors import sentence
from tests.cli.conftest import Run


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such-command",),
        ("users", "no-such-command"),
        ("users", "add"),
        ("users", "list", "--no-such-option"),
        ("keys", "create", "n8n"),
    ],
)
def test_wrong_use_is_2_and_said_on_stderr(run: Run, arguments: tuple[str, ...]) -> None:
    answer = run(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert "Error: " in answer.err


@pytest.mark.parametrize("group", [(), ("users",), ("keys",)])
def test_help_is_good_and_lists_the_commands(run: Run, group: tuple[str, ...]) -> None:
    answer = run(*group, "--help")
    assert (answer.code, answer.err) == (0, "")
    assert "Commands:" in answer.out


def test_a_wrong_setting_is_1_and_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOARD_LEASE", "soon")
    answer = run("users", "list")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("BOARD_LEASE: ")
    assert "Example: 60s" in answer.err


@pytest.mark.parametrize("url", ["mysql://host/db", "postgresql://user:topsecret@host:port/db"])
def test_a_wrong_database_address_is_named_without_its_password(
    run: Run, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("BOARD_DATABASE_URL", url)
    answer = run("migrate")
    assert answer.code == 1
    assert answer.err.startswith("BOARD_DATABASE_URL: ")
    assert "topsecret" not in answer.err


def test_an_unmigrated_database_is_1_and_names_the_command_that_helps(run: Run) -> None:
    answer = run("users", "list")
    assert (answer.code, answer.out) == (1, "")
    assert "board migrate" in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("command", ["migrate", "users"])
def test_a_database_that_does_not_answer_is_one_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("BOARD_DATABASE_URL", "postgresql://user:topsecret@127.0.0.1:1/board")
    answer = run(*((command, "list") if command == "users" else (command,)))
    assert answer.code == 1
    assert "BOARD_DATABASE_URL" in answer.err
    assert "topsecret" not in answer.err
    assert answer.err.count("\n") == 1


def test_a_file_that_is_no_database_is_one_sentence(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("this is no database, however long it may be " * 100)
    monkeypatch.setenv("BOARD_DATABASE_URL", "sqlite:///notes.txt")
    answer = run("users", "list")
    assert answer.code == 1
    assert "not a database" in answer.err
    assert answer.err.count("\n") == 1


def test_a_folder_that_cannot_be_made_is_named(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("in the way")
    answer = run("migrate")
    assert answer.code == 1
    assert answer.err.startswith("data")


def test_an_error_nobody_foresaw_names_its_place_and_not_its_values() -> None:
    try:
        raise KeyError("topsecret")
    except KeyError as error:
        said = sentence(error)
    assert "KeyError" in said
    assert "test_main.py" in said
    assert "topsecret" not in said


def test_a_process_of_its_own_ends_with_the_code(tmp_path: Path) -> None:
    program = [sys.executable, "-c", "from board.cli import main; main()", "users", "list"]
    checkout = str(Path(__file__).parents[2])
    ended = subprocess.run(
        program,
        cwd=tmp_path,
        env={"PYTHONPATH": checkout, "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert (
        ended.stderr
        == "The database is empty. Run `board migrate` first, or use `board up`, which does it by itself.\n"
    )


@pytest.mark.parametrize(
    ("load", "kept_out"),
    [
        ("from board.cli import main\nwith contextlib.suppress(SystemExit):\n    main(['--help'])", "sqlalchemy"),
        ("import board.cli.serve", "alembic"),  # needed only where the schema changes
        ("import board.cli.serve", "fastapi"),  # a worker alone needs no web server
        ("import board.cli.serve", "redis"),  # most boards have none
        ("from board.worker.registry import load_handlers\nload_handlers()", "PIL"),  # only children open files
        ("from board.worker.registry import load_handlers\nload_handlers()", "pebble"),
    ],
)
def test_a_command_loads_what_it_needs_only(load: str, kept_out: str, pytestconfig: pytest.Config) -> None:
    program = f"import contextlib, sys\n{load}\nsys.exit({kept_out!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=pytestconfig.rootpath, check=False)
    assert done.returncode == 0, done.stderr


def test_each_line_of_the_help_has_its_command() -> None:
    for name, entry in COMMANDS.items():
        made = typer.main.get_command(app).commands[name]
        assert made.name == name
        assert made.help, name
        assert len(entry.help) < 65, "it fits on a line of a terminal of 80 columns"
