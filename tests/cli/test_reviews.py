"""`board reviews`: links made, listed and withdrawn on the command line."""

import pytest

from tests.cli.conftest import Run
from tests.rig.working import OpenWorking


@pytest.fixture
def review(board: Run, working: OpenWorking, monkeypatch: pytest.MonkeyPatch) -> str:
    """An open review of a task that goes straight to a person."""
    opened = working()
    monkeypatch.setenv("BOARD_DATA_DIR", str(opened.board.settings.data_dir))
    opened.type("letter", "none")
    opened.submit("T-1", "letter")
    opened.wait("T-1", "needs_review")
    assert board("users", "add", "li@example.org", "--role", "reviewer").code == 0
    return str(opened.reviews("T-1")[-1]["id"])


def test_a_link_from_its_making_to_its_end(board: Run, review: str) -> None:
    answer = board("reviews", "link", review, "--user", "Li@example.org")
    assert answer.code == 0
    assert answer.out.startswith("http://127.0.0.1:8000/r/")
    assert "li@example.org" in answer.err
    listed = board("reviews", "links", review, "--json")
    [link] = listed.json["data"]
    assert (link["user"], link["purpose"], link["revoked_at"]) == ("li@example.org", "cli", None)
    assert answer.out.strip().rpartition("/")[2] not in listed.out
    assert board("reviews", "unlink", review, link["id"]).code == 0
    assert board("reviews", "links", review, "--json").json["data"][0]["revoked_at"] is not None
    assert "li@example.org" in board("reviews", "links", review).out


def test_what_cannot_be_is_said(board: Run, review: str) -> None:
    board("users", "add", "view@example.org", "--role", "viewer")
    for arguments, words in (
        (("link", review, "--user", "nobody@example.org"), "no user"),
        (("link", review, "--user", "view@example.org"), "not decide"),
        (("link", "987654", "--user", "li@example.org"), "no such review"),
        (("unlink", review, "987654"), "no such link"),
    ):
        answer = board("reviews", *arguments)
        assert (answer.code, answer.out) == (1, "")
        assert words in answer.err
    assert board("reviews", "links", review, "--json").json == {"data": []}
