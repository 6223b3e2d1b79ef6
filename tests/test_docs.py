"""Whatever a user can set, call or type is documented, and the pages name nothing that is not there."""

import re
from pathlib import Path

from board.settings import Settings

DOCS = Path(__file__).parent.parent / "docs"


def test_every_setting_is_documented_and_no_other() -> None:
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(BOARD_[A-Z0-9_]+)` \|", page, re.MULTILINE))
    assert documented == {f"BOARD_{name.upper()}" for name in Settings.model_fields}
