"""`board report`: the headline on the screen, the whole in a file."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run

WEEK = 7 * 86_400.0


@pytest.fixture
def worked(board: Run, tmp_path: Path) -> None:
    (tmp_path / "types.yaml").write_text("types: [{name: trial, handler: {use: echo}}]")
    assert board("types", "apply", "types.yaml").code == 0
    (tmp_path / "task.json").write_text(json.dumps({"type": "trial", "task_id": "T-1"}))
    assert board("submit", "task.json").code == 0


def test_the_last_week_that_is_over(board: Run, worked: None, at: Callable[[float], None], tmp_path: Path) -> None:
    at(WEEK)
    shown = board("report")
    assert (shown.code, shown.err) == (0, "")
    assert [line.split()[0] for line in shown.out.splitlines()[1:3]] == ["done", "failed"]
    document = board("report", "--json").json
    assert (document["created"], document["frozen"]) == (1, True)
    for name in ("report.json", "report.xlsx"):
        assert board("report", "--out", name).code == 0
    assert json.loads((tmp_path / "report.json").read_text()) == document
    assert (tmp_path / "report.xlsx").read_bytes().startswith(b"PK")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--week", "48"), 1, "“48” is not a week; write year and number, such as 2026-W48."),
        (("--week", "2999-W01"), 1, "2999-W01 has not begun yet."),
        (("--out", "report.pdf"), 2, "end the name with .json or .xlsx"),
    ],
)
def test_wrong_use(board: Run, arguments: tuple[str, ...], code: int, words: str) -> None:
    wrong = board("report", *arguments)
    assert wrong.code == code
    assert words in wrong.err
