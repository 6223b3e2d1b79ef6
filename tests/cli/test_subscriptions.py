from board.access.rights import CONSOLE
from board.cli.context import opened
from board.effects import subscriptions
from board.effects.subscriptions import Event, Wish
from tests.cli.conftest import Run


class Unsealed:
    def encrypt(self, text: str) -> str:
        return text


def test_subscriptions_are_listed_and_removed(board: Run) -> None:
    with opened() as inside, inside.db.write() as tx:
        wish = Wish("https://n8n.example.org/webhook/x", (Event.DONE,), ("trial",))
        row, _ = subscriptions.subscribe(tx, wish, CONSOLE, Unsealed(), lambda *_: None)
    [shown] = board("subscriptions", "list", "--json").json["data"]
    assert (shown["id"], shown["events"], shown["types"]) == (row["id"], ["task.done"], ["trial"])
    assert "https://n8n.example.org/webhook/x" in board("subscriptions", "list").out
    assert board("subscriptions", "remove", row["id"]).code == 0
    assert board("subscriptions", "list", "--json").json == {"data": []}
    again = board("subscriptions", "remove", row["id"])
    assert (again.code, "There is no such subscription." in again.err) == (1, True)
