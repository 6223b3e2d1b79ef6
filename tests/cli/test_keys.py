import pytest

from board.access import keys
from board.access.rights import Actor
from board.db.engine import Database
from tests.cli.conftest import Run


def who(database_url: str, secret: str) -> Actor | None:
    db = Database(database_url)
    try:
        with db.read() as connection:
            return keys.find(connection, secret, "")
    finally:
        db.close()


def test_the_printed_secret_opens_the_board_and_stands_alone_on_stdout(board: Run, database_url: str) -> None:
    answer = board("keys", "create", "n8n", "--scopes", "read, submit")
    assert answer.code == 0
    assert "not shown again" in answer.err
    actor = who(database_url, answer.out.rstrip("\n"))
    assert actor is not None
    assert (actor.name, actor.scopes) == ("n8n", ("submit", "read"))


def test_json_holds_the_secret_once(board: Run, database_url: str) -> None:
    made = board("keys", "create", "n8n", "--scopes", "admin", "--json")
    assert (made.code, made.err) == (0, "")
    unlimited = {"rate": None, "max_waiting": None}
    assert made.json == {"name": "n8n", "scopes": ["admin"], **unlimited, "key": made.json["key"]}
    assert who(database_url, made.json["key"]) is not None
    for listed in (board("keys", "list", "--json"), board("keys", "list")):
        assert listed.code == 0
        assert "n8n" in listed.out
        assert made.json["key"] not in listed.out


def test_a_keys_limits_hold_and_are_listed(board: Run, database_url: str) -> None:
    limits = ("--rate", "600/min", "--max-waiting", "5000")
    actor = who(database_url, board("keys", "create", "n8n", "--scopes", "submit", *limits).out.strip())
    assert actor is not None
    assert (actor.rate, actor.max_waiting) == ("600/min", 5000)
    assert "600/min, 5000 waiting" in board("keys", "list").out


def test_a_revoked_key_opens_nothing_and_stays_listed(board: Run, database_url: str) -> None:
    secret = board("keys", "create", "线索 1", "--scopes", "submit").out.strip()
    board("keys", "create", "dify", "--scopes", "read,work")
    assert board("keys", "revoke", "线索 1", "--json").json == {"name": "线索 1", "revoked": True}
    assert board("keys", "revoke", "线索 1").code == 0
    assert who(database_url, secret) is None
    lines = board("keys", "list").out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["NAME", "dify", "线索 1"]
    assert "active" in lines[1]
    assert "revoked" in lines[2]
    assert len({line.encode("gb18030").index(b"bk_") for line in lines[1:]}) == 1  # aligned where 线 is two wide


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("create", "n8n", "--scopes", "submit"), 1, "take another name"),
        (("create", "a,b", "--scopes", "submit"), 1, "letters, digits"),
        (("create", "bootstrap", "--scopes", "submit"), 1, "BOARD_BOOTSTRAP_API_KEY"),
        (("create", "new", "--scopes", "submit,root"), 2, "“root” is not a scope"),
        (("create", "new", "--scopes", " ,"), 2, "at least one of submit"),
        (("create", "new", "--scopes", "submit", "--max-waiting", "0"), 2, "--max-waiting"),
        (("revoke", "unknown"), 1, "no key named “unknown”"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    board: Run, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    board("keys", "create", "n8n", "--scopes", "submit")
    before = board("keys", "list", "--json").json
    answer = board("keys", *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert sentence in answer.err
    assert board("keys", "list", "--json").json == before
