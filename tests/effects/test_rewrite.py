"""Which address is called in place of one that only its caller can reach."""

import pytest

from board.effects.rewrite import Rewrite

RULES = Rewrite.read(["http://localhost:5678 = http://n8n:5678", "https://n8n.example.org=http://proxy/n8n/"])


@pytest.mark.parametrize(
    ("url", "called"),
    [
        (
            "http://localhost:5678/webhook-waiting/7?signature=a%20b",
            "http://n8n:5678/webhook-waiting/7?signature=a%20b",
        ),
        ("http://LocalHost:5678/a?b=http://localhost:5678/", "http://n8n:5678/a?b=http://localhost:5678/"),
        ("http://localhost:5678", "http://n8n:5678/"),
        ("https://n8n.example.org:443/webhook/x", "http://proxy/n8n/webhook/x"),
        ("http://localhost:56780/a", "http://localhost:56780/a"),
        ("http://localhost:5678@evil.example/a", "http://localhost:5678@evil.example/a"),
        ("http://localhost:5678.evil.example/a", "http://localhost:5678.evil.example/a"),
        ("https://localhost:5678/a", "https://localhost:5678/a"),
        ("http://other/a", "http://other/a"),
    ],
)
def test_only_scheme_host_and_port_count(url: str, called: str) -> None:
    assert RULES(url) == called


def test_what_is_called_instead_is_allowed() -> None:
    assert RULES.reached == ["n8n:5678", "proxy:80"]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("http://localhost:5678", "has no ="),
        ("localhost:5678=http://n8n:5678", "Only http:// and https://"),
        ("http://localhost:5678/x=http://n8n:5678", "must end after the host or port"),
        ("http://localhost:5678=http://n8n:5678/?a=b", "must end after the path"),
        ("http://localhost:5678=http://u:p@n8n:5678", "user name or password"),
    ],
)
def test_a_wrong_rule_is_refused(rule: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("?", r"\?")):
        Rewrite.read([rule])


def test_one_address_leads_to_one_place() -> None:
    with pytest.raises(ValueError, match="stands twice"):
        Rewrite.read(["http://a=http://b", "http://A:80=http://c"])
