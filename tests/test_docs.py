"""Whatever a user can set, call or type is documented, and the pages name nothing that is not there."""

import re
from pathlib import Path

from board.app import build_app
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
