"""Whatever a user can set, call or type is documented, and the pages name nothing that is not there."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from board.app import build_app
from board.cli import app as command_line
from board.rooms import open_board
from board.settings import Settings, load

DOCS = Path(__file__).parent.parent / "docs"


def rows(page: str, pattern: str) -> set[str]:
    """The first cells of the page's tables that look like `pattern`, which stands between backticks."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return set(re.findall(rf"^\| `({pattern})` \|", text, re.MULTILINE))


def test_every_setting_is_documented_and_no_other() -> None:
    settings = {f"BOARD_{name.upper()}" for name in Settings.model_fields}
    assert rows("settings.md", "BOARD_[A-Z0-9_]+") == settings


def test_every_call_of_the_api_is_documented_and_no_other(sqlite_url: str, tmp_path: Path) -> None:
    board = open_board(load(database_url=sqlite_url, data_dir=tmp_path))
    paths = build_app(board).openapi()["paths"]
    board.close()
    calls = {
        f"{method.upper()} {path.removeprefix('/api/v1')}" for path, methods in paths.items() for method in methods
    }
    assert rows("api.md", "[A-Z]+ /[^`]*") == calls


def commands(command: Any, path: str) -> Iterator[str]:
    """Every command that can be run, as it is typed."""
    if not hasattr(command, "commands"):
        yield path
        return
    for name, part in command.commands.items():
        yield from commands(part, f"{path} {name}")


def test_every_command_is_documented_and_no_other() -> None:
    assert rows("commands.md", "board [a-z -]+") == set(commands(typer.main.get_command(command_line), "board"))
