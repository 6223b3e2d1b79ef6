"""The `board` command, run in this process with an environment of its own."""

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from board.cli import main


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Answer]


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but the test's own, and nothing left behind in the checkout."""
    import os

    for name in list(os.environ):
        if name.startswith("BOARD_") and not name.startswith("BOARD_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """A command that serves sets logging up for its process, which here is that of all tests."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def run(environment: None, logging_as_before: None, capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("users", "list")` → exit code, stdout, stderr; without any settings."""

    def command(*arguments: str) -> Answer:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        code = ended.value.code
        return Answer(code if isinstance(code, int) else 0, out, err)

    return command


@pytest.fixture
def board(run: Run, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command on a migrated database; the test runs on each engine."""
    monkeypatch.setenv("BOARD_DATABASE_URL", database_url)
    return run
