from tests.cli.conftest import Run


def test_a_group_from_its_making_to_its_end(board: Run) -> None:
    board("users", "add", "li@example.org", "--role", "reviewer")
    board("keys", "create", "n8n", "--scopes", "review")
    assert board("groups", "add", "sales").code == 0
    answer = board("groups", "join", "sales", "Li@example.org", "key:n8n", "--json")
    assert answer.json == {"name": "sales", "members": ["key:n8n", "user:li@example.org"]}
    board("groups", "join", "sales", "li@example.org")  # again: no difference
    board("groups", "leave", "sales", "key:n8n")
    assert board("groups", "list", "--json").json == {"data": [{"name": "sales", "members": ["user:li@example.org"]}]}
    assert "li@example.org" in board("groups", "list").out
    assert board("groups", "remove", "sales").code == 0
    assert board("groups", "list", "--json").json == {"data": []}


def test_what_does_not_exist_is_named(board: Run) -> None:
    answer = board("groups", "join", "sales", "li@example.org")
    assert (answer.code, "There is no group sales." in answer.err) == (1, True)
    board("groups", "add", "sales")
    answer = board("groups", "join", "sales", "nobody@example.org")
    assert (answer.code, "nobody@example.org" in answer.err) == (1, True)
    assert board("groups", "list", "--json").json == {"data": [{"name": "sales", "members": []}]}
