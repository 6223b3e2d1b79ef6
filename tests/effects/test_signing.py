"""Signatures that the standard's own libraries accept, secrets that change without a gap, tokens as n8n reads them."""

import base64
import hmac
import json
from typing import Any

import pytest

from board.effects import signing
from board.effects.authentication import auth_headers
from board.settings import SettingsError, load
from tests.effects.verify import verified
from tests.rig.receiver import Receiver
from tests.rig.working import OpenWorking

OLD = "whsec_" + base64.b64encode(b"the old secret of a receiver").decode()
NEW = "whsec_" + base64.b64encode(b"the new secret of a receiver").decode()


def test_the_example_of_the_standard() -> None:
    """The worked example that libraries of Standard Webhooks are tested with."""
    signature = signing.standard(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "1614265330",
        b'{"test": 2432232314}',
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    ("given", "secrets"),
    [
        ("whsec_YQ==", ["whsec_YQ=="]),
        ("whsec_YQ==,whsec_Yg==", ["whsec_YQ==", "whsec_Yg=="]),
        ("whsec_YQ==, plain text", ["whsec_YQ==", "plain text"]),
        ("one, with a comma", ["one, with a comma"]),
        (["new, too", "old"], ["new, too", "old"]),
    ],
)
def test_how_several_secrets_are_written(given: Any, secrets: list[str]) -> None:
    assert signing.secrets_of(given) == secrets
    assert signing.problem_of(given) is None


@pytest.mark.parametrize("given", [[NEW, OLD], f"{NEW},{OLD}", ["new text, a comma", OLD]])
def test_while_a_secret_changes_both_hold(working_sqlite: OpenWorking, receiver: Receiver, given: Any) -> None:
    board = working_sqlite()
    board.apply(connections=[{"name": "hook", "kind": "webhook", "url": receiver.url, "secret": given}])
    board.type("publish", use="echo", action={"use": "webhook", "connection": "hook"})
    board.submit(type="publish")
    board.wait("T-1", "done")
    [request] = receiver.wait_for(1)
    new, old = signing.secrets_of(given)
    assert verified(request, new)
    assert verified(request, old)
    assert not verified(request, "whsec_" + base64.b64encode(b"another").decode())
    assert len(request.headers["webhook-signature"].split(" ")) == 2


def test_the_boards_own_secret_changes_alike(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite(webhook_secret=f"{NEW},{OLD}")
    board.type("echo", use="echo")
    board.submit(type="echo", callback_url=receiver.url)
    [request] = receiver.wait_for(1)
    assert verified(request, NEW)
    assert verified(request, OLD)


@pytest.mark.parametrize("given", ["whsec_", "whsec_***", f"{NEW},{OLD},{OLD}", f"{NEW},"])
def test_a_secret_that_cannot_sign_stops_the_start(given: str) -> None:
    with pytest.raises(SettingsError, match="BOARD_WEBHOOK_SECRET"):
        load(webhook_secret=given)


def opened(token: str, secret: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims of a token, as a receiver reads them: the signature first."""
    head, claims, signature = token.split(".")
    expected = base64.urlsafe_b64encode(hmac.digest(secret.encode(), f"{head}.{claims}".encode(), "sha256"))
    assert signature == expected.rstrip(b"=").decode()
    return _json(head), _json(claims)


def _json(part: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


def test_a_token_says_who_when_and_for_which_call() -> None:
    block = {"jwt": {"secret": "s", "claims": {"aud": "n8n", "iss": "board-eu"}}}
    head, claims = opened(auth_headers(block, "msg_1", 1000)["authorization"].removeprefix("Bearer "), "s")
    assert head == {"alg": "HS256", "typ": "JWT"}
    assert claims == {"iss": "board-eu", "aud": "n8n", "iat": 1000, "exp": 1300, "jti": "msg_1"}


def test_an_action_with_a_token(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite()
    auth = {"jwt": {"secret": "pass-0815", "claims": {"sub": "board"}}}
    board.apply(connections=[{"name": "hook", "kind": "webhook", "url": receiver.url, "secret": NEW, "auth": auth}])
    board.type("publish", use="echo", action={"use": "webhook", "connection": "hook"})
    board.submit(type="publish")
    board.wait("T-1", "done")
    [request] = receiver.wait_for(1)
    kind, _, token = request.headers["authorization"].partition(" ")
    _, claims = opened(token, "pass-0815")
    assert (kind, claims["sub"], claims["jti"]) == ("Bearer", "board", request.headers["webhook-id"])
    assert verified(request, NEW)
    assert "0815" not in board.dump()
