import multiprocessing
import os
import stat
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from board.access import secret_file
from board.settings import SettingsError


def test_the_first_call_makes_the_file_for_its_user_alone_and_later_ones_read_it(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "secret"
    assert secret_file.read_or_make(path, lambda: "first", "BOARD_X") == "first"
    assert secret_file.read_or_make(path, lambda: "second", "BOARD_X") == "first"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["secret"]


def test_whoever_is_second_takes_the_secret_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "secret"

    def make_while_another_process_is_faster() -> str:
        path.write_text("winner\n")
        return "loser"

    assert secret_file.read_or_make(path, make_while_another_process_is_faster, "BOARD_X") == "winner"
    assert path.read_text() == "winner\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]


def test_a_failure_while_making_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail() -> str:
        raise RuntimeError("no randomness")

    with pytest.raises(RuntimeError):
        secret_file.read_or_make(tmp_path / "secret", fail, "BOARD_X")
    assert list(tmp_path.iterdir()) == []


def _race(path: Path, start: Barrier, answers: "multiprocessing.Queue[str]") -> None:
    start.wait(60)
    answers.put(secret_file.read_or_make(path, lambda: f"made by {os.getpid()}", "BOARD_X"))


def test_processes_that_start_at_once_agree(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    path, start, answers = tmp_path / "secret", context.Barrier(4), context.Queue()
    processes = [context.Process(target=_race, args=(path, start, answers)) for _ in range(4)]
    for process in processes:
        process.start()
    got = [answers.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(60)
    assert set(got) == {path.read_text().strip()}
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]


def test_no_file_is_none(tmp_path: Path) -> None:
    assert secret_file.read(tmp_path / "secret") is None


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe\x00"])
def test_an_empty_or_broken_file_is_named_and_never_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match="secret"):
        secret_file.read_or_make(path, lambda: "new", "BOARD_X")
    assert path.read_bytes() == content


def test_a_folder_that_cannot_be_made_is_named_with_the_setting_to_use_instead(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SettingsError, match="BOARD_X"):
        secret_file.read_or_make(tmp_path / "file" / "secret", lambda: "new", "BOARD_X")
