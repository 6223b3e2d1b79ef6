"""A judgement is read out of whatever a model wrote, and always has the contract's shape."""

from typing import Any

import pytest

from board.catalogue.spec import JudgementPaths
from board.worker.judgement import at_path, read


@pytest.mark.parametrize(
    ("path", "found"),
    [("a.b", 1), ("list.1", "y"), ("list.9", None), ("list.x", None), ("list.²", None), ("a.b.c", None), ("z", None)],
)
def test_paths(path: str, found: Any) -> None:
    assert at_path({"a": {"b": 1}, "list": ["x", "y"]}, path) == found


def test_without_paths_there_is_no_judgement() -> None:
    assert read({"summary": "x"}, JudgementPaths()) is None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("approve", "approve"), (" Reject\n", "reject"), ("REVISE", "revise"),
        ("delete everything", None), (7, None), ({"a": 1}, None), (None, None),
    ],
)  # fmt: skip
def test_only_known_verdicts(raw: Any, expected: str | None) -> None:
    found = read({"v": raw}, JudgementPaths(verdict="v"))
    assert found is not None
    assert found["verdict"] == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [(None, []), ("", []), ("one", ["one"]), (["a", 2, None, " "], ["a", "2"]), ({"k": 1}, ["{'k': 1}"]), (0, ["0"])],
)
def test_reasons_are_a_list_of_texts(raw: Any, expected: list[str]) -> None:
    found = read({"r": raw}, JudgementPaths(reasons="r"))
    assert found is not None
    assert found["reasons"] == expected


@pytest.mark.parametrize("result", [None, "text", [], 7, True, {"s": {"deep": 1}}])
def test_any_result_gives_the_whole_shape(result: Any) -> None:
    found = read(result, JudgementPaths(summary="s", confidence="c"))
    assert found is not None
    assert set(found) == {"summary", "advice", "verdict", "confidence", "reasons", "risks"}
    assert found["summary"] is None or isinstance(found["summary"], str)
    assert found["confidence"] is None
