import pytest

from board.access import links
from board.db.engine import Database
from tests.cli.conftest import Run


def use(database_url: str, link: str, password: str) -> str:
    db = Database(database_url)
    try:
        with db.write() as tx:
            return links.use(tx, link.rsplit("/", 1)[1], password=password).email
    finally:
        db.close()


def test_adding_prints_the_link_that_lets_the_person_in(
    board: Run, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOARD_PUBLIC_URL", "https://board.example.org/")
    answer = board("users", "add", "Li@Example.org", "--role", "owner")
    assert answer.code == 0
    assert "li@example.org (owner)" in answer.err
    assert answer.out.startswith("https://board.example.org/setup/")
    assert board("users", "list", "--json").json["data"][0]["has_password"] is False
    assert use(database_url, answer.out.strip(), "correct horse battery") == "li@example.org"
    (person,) = board("users", "list", "--json").json["data"]
    assert (person["email"], person["role"], person["has_password"]) == ("li@example.org", "owner", True)


def test_json_holds_the_person_and_the_link(board: Run) -> None:
    answer = board("users", "add", "li@example.org", "--json")
    assert (answer.code, answer.err) == (0, "")
    assert answer.json["role"] == "viewer"
    assert answer.json["setup_url"].startswith("http://127.0.0.1:8000/setup/")
    assert answer.json["created_at"].endswith("Z")


def test_a_new_link_ends_the_former(board: Run, database_url: str) -> None:
    former = board("users", "add", "li@example.org").out.strip()
    fresh = board("users", "link", "LI@example.org")
    assert fresh.code == 0
    with pytest.raises(Exception, match="ask for a new one"):
        use(database_url, former, "correct horse battery")
    assert use(database_url, board("users", "link", "li@example.org", "--json").json["setup_url"], "correct horse")


def test_the_list_shows_who_is_there_and_no_link(board: Run) -> None:
    board("users", "add", "b@example.org", "--role", "reviewer")
    link = board("users", "add", "a@example.org").out.strip()
    answer = board("users", "list")
    assert [line.split()[:3] for line in answer.out.splitlines()] == [
        ["EMAIL", "ROLE", "STATUS"],
        ["a@example.org", "viewer", "invited"],
        ["b@example.org", "reviewer", "invited"],
    ]
    assert link.rsplit("/", 1)[1] not in answer.out


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("add", "li@example.org"), 1, "li@example.org already"),
        (("add", "no address"), 1, "not a mail address"),
        (("add", "b@example.org", "--role", "boss"), 2, "boss"),
        (("link", "nobody@example.org"), 1, "no user with the address nobody@example.org"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    board: Run, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    board("users", "add", "li@example.org")
    before = board("users", "list", "--json").json
    answer = board("users", *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert sentence in answer.err
    assert board("users", "list", "--json").json == before
