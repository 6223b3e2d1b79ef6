"""Chats as connections: the address is the password, so it is kept closed and its host is shown."""

from __future__ import annotations

from typing import Any

import pytest

from board.catalogue import store
from board.catalogue.apply import Applied, BadCatalogue
from board.rooms import Board
from tests.api.conftest import Api, open_api  # noqa: F401 - a fixture
from tests.catalogue.conftest import Apply
from tests.rig.receiver import Receiver, Reply

HOOK = "https://hooks.slack.com/services/T0/B0/se-cret"
BOT = {"name": "tg", "kind": "telegram", "key": "12:ab-c_D", "chat": -100}


def test_the_address_is_kept_closed_and_its_host_is_shown(board: Board, put: Apply) -> None:
    spec = {"name": "team", "kind": "slack", "url": HOOK}
    assert put(connections=[spec]) == Applied(created=["connection team"])
    assert put(connections=[spec]) == Applied(unchanged=["connection team"])
    assert put(connections=[spec | {"url": HOOK + "2"}]) == Applied(updated=["connection team"])
    with board.db.read() as connection:
        [row] = store.list_connections(connection)
        view = board.catalogue.open_connection(connection, "team")
    assert "se-cret" not in str(dict(row))
    assert store.shown_connection(row)["url"] == "https://hooks.slack.com"
    assert view is not None
    assert (view.url, view.secrets) == ("https://hooks.slack.com", {"key": HOOK + "2"})


def test_a_telegram_bot_has_a_token_and_a_chat(board: Board, put: Apply) -> None:
    put(connections=[BOT])
    with board.db.read() as connection:
        view = board.catalogue.open_connection(connection, "tg")
    assert view is not None
    assert (view.url, view.options, view.secrets) == ("https://api.telegram.org", {"chat": -100}, {"key": "12:ab-c_D"})


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"kind": "slack", "url": "https://hooks.slack.com"}, "whole address"),
        ({"kind": "teams", "url": "https://x.webhook.office.com/webhookb2/a"}, "Workflows"),
        ({"kind": "wecom", "url": "https://x.example/a?key=1", "secret": "s"}, "one secret only where its robot signs"),
        ({"kind": "telegram", "key": "12:abc"}, "chat, the number of the chat"),
        ({"kind": "telegram", "key": "abc", "chat": 1}, "the bot's token"),
        ({"kind": "slack", "url": HOOK, "chat": 1}, "kind telegram"),
        ({"kind": "feishu", "url": 7}, "whole address"),
    ],
)
def test_what_does_not_fit_is_refused_in_plain_words(put: Apply, spec: dict[str, Any], words: str) -> None:
    with pytest.raises(BadCatalogue, match=words) as refused:
        put(connections=[{"name": "team", **spec}])
    assert "se-cret" not in str(refused.value)


def test_testing_a_chat_sends_it_a_message(open_api: Any, receiver: Receiver) -> None:  # noqa: F811
    api: Api = open_api()
    api.types(connections=[{"name": "team", "kind": "wecom", "url": f"{receiver.url}/send?key=se-cret"}])
    receiver.reply(Reply(body=b'{"errcode":0}'), Reply(body=b'{"errcode":93000,"errmsg":"invalid webhook url"}'))
    good = api.post("/connections/team/test").json()
    assert (good["works"], good["findings"]) == (True, [{"status": "ok", "message": "It took a test message."}])
    assert receiver.requests[0].path == "/send?key=se-cret"
    bad = api.post("/connections/team/test")
    assert not bad.json()["works"]
    assert "there is no robot at that address" in bad.text
    assert "se-cret" not in bad.text
