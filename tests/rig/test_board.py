"""Real processes of the board: started, asked, killed, and watched for errors that nobody handled."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.rig.board import StartBoard


def test_one_process_does_all(board_process: StartBoard) -> None:
    board = board_process("up")
    with board.api as api:
        who = api.get("/me")
        assert who.status_code == 200
        assert "admin" in who.json()["scopes"]
    assert board.stop() == 0


def test_the_roles_apart_share_a_database(board_process: StartBoard, database_url: str) -> None:
    first = board_process("api", database_url=database_url)
    second = board_process("api", database_url=database_url)
    worker = board_process("worker", database_url=database_url)
    with first.api as one, second.api as two:
        assert one.post("/types", json={"types": [{"name": "trial", "handler": {"use": "echo"}}]}).is_success
        sent = one.post("/tasks?wait=20", json={"type": "trial", "task_id": "t-1", "payload": {"a": 1}})
        assert sent.status_code == 201, sent.text
        seen = two.get("/tasks/t-1").json()
    assert (seen["status"], seen["result"]) == ("done", {"a": 1})
    assert [process.stop() for process in (worker, first, second)] == [0, 0, 0]


def test_a_killed_process_ends_at_once(board_process: StartBoard) -> None:
    board = board_process("up")
    board.kill()
    assert board.wait() == -9


def test_a_command_runs_to_its_end(run_board: Callable[..., Any]) -> None:
    assert run_board("migrate").returncode == 0
    made = run_board("keys", "create", "n8n", "--scopes", "submit", "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["name"] == "n8n"
    wrong = run_board("keys", "create", "other", "--scopes", "everything")
    assert wrong.returncode == 2  # wrong use
    assert "everything" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_wrong_settings_stop_the_start_with_a_sentence(board_process: StartBoard) -> None:
    board = board_process("up", env={"BOARD_LEASE": "soon"}, wait=False)
    assert board.wait() == 1
    assert "BOARD_LEASE" in board.log
    with pytest.raises(pytest.fail.Exception, match="ended with exit code 1"):
        board.wait_until_healthy()
