"""Dify's faults from the task's side: what is tried again, when, and what never shows. The rest: tests/integrations."""

import logging
from typing import Any

import pytest

from board.worker import retry
from integrations.dify.follow import Pace
from integrations.dify.workflow import Workflow
from tests.rig.standin import RunningStandin
from tests.rig.working import OpenWorking, WorkingBoard

KEY = "app-demo-leads"


@pytest.fixture
def board(working: OpenWorking, dify_standin: RunningStandin) -> WorkingBoard:
    board = working(Workflow(Pace(0.05, 0.2)))
    connect(board, dify_standin)
    return board


def connect(board: WorkingBoard, standin: RunningStandin, key: str = KEY, **handler: Any) -> None:
    dify = {"name": "dify", "kind": "dify", "url": standin.api_url, "key": key, "grace": "500ms"}
    board.apply(connections=[dify])
    board.type("lead", use="dify.workflow", handler={"connection": "dify", "timeout": "5s"} | handler)


def ask(board: WorkingBoard, fault: str) -> None:
    board.submit(type="lead", payload={"text": "A quote, please.", "standin_fault": fault})


def started(standin: RunningStandin) -> int:
    return len(standin.app.state.runs)


@pytest.mark.parametrize("fault", ["rate_limit", "provider_rate_limit", "too_many_requests", "error_event"])
def test_a_rate_limit_waits_and_comes_again(board: WorkingBoard, dify_standin: RunningStandin, fault: str) -> None:
    """B021: HTTP 429, two kinds of HTTP 400, and an event in a stream of HTTP 200."""
    ask(board, f"{fault} times=1")
    task = board.wait("T-1", "done", timeout=20)
    assert task["retry_count"] == 1
    first, second = board.attempts()
    assert first["error_class"] in ("quota", "transient")
    assert first["error_cause"] == "rate_limit"
    if fault == "rate_limit":  # it said Retry-After: 3
        assert (second["started_at"] - first["finished_at"]).total_seconds() >= 3
    assert board.kinds() == ["created", "started", "retry_planned", "started", "done"]


@pytest.mark.parametrize(("fault", "code"), [("invalid_param", "invalid_param"), ("unauthorized", "401")])
def test_a_refusal_fails_at_once(board: WorkingBoard, dify_standin: RunningStandin, fault: str, code: str) -> None:
    ask(board, fault)
    task = board.wait("T-1", "failed")
    assert (task["retry_count"], task["error_class"]) == (0, "permanent")
    assert code in task["last_error"]
    assert started(dify_standin) == 0


def test_a_gateways_page_is_neither_a_result_nor_a_reason_for_a_second_run(
    board: WorkingBoard, dify_standin: RunningStandin
) -> None:
    """B013"""
    ask(board, "html_504")
    board.wait("T-1", "done")
    assert started(dify_standin) == 1
    assert "<html" not in board.dump()


def test_a_run_of_which_nothing_is_proven_is_never_called_done(
    board: WorkingBoard, dify_standin: RunningStandin
) -> None:
    """B017: no closing event, and its detail says "running" for ever."""
    connect(board, dify_standin, timeout="1s")
    ask(board, "no_terminal_unknown")
    board.wait("T-1", "needs_review", timeout=30)
    assert board.reviews()[0]["reason"] == "unknown_outcome"
    assert started(dify_standin) == 1
    assert board.data()["result"] is None


@pytest.mark.parametrize("fault", ["nul", "surrogate"])
def test_characters_that_no_database_takes(board: WorkingBoard, fault: str) -> None:
    ask(board, fault)
    board.wait("T-1", "done")
    text = str(board.data()["result"])
    assert "�" in text
    assert "\x00" not in text


def test_the_key_shows_nowhere(
    board: WorkingBoard, dify_standin: RunningStandin, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "delay", lambda *_: 0.0)
    caplog.set_level(logging.DEBUG)
    for number, fault in enumerate(["rate_limit", "unauthorized", "html_504", "failed", "drop_after_id"]):
        board.submit(f"T-{number}", type="lead", payload={"text": "x", "standin_fault": fault})
    connect(board, dify_standin, key="app-wrong-0123456789")
    board.submit("T-wrong", type="lead", payload={"text": "x"})
    for name in ("T-0", "T-1", "T-2", "T-3", "T-4", "T-wrong"):
        board.wait(name, "done", "failed", timeout=20)
    for key in (KEY, "0123456789"):
        assert key not in board.dump()
        assert key not in caplog.text
