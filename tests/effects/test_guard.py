"""Which addresses may be called, however they are written."""

import ipaddress
import json
from pathlib import Path

import pytest

from board.effects import guard
from board.effects.guard import Guard
from board.ports import Refused

CASES = json.loads((Path(__file__).parents[1] / "data/cases/web/callback_urls.json").read_text())
PUBLIC = ipaddress.ip_address("93.184.215.14")


@pytest.mark.parametrize("url", CASES["must_be_refused_unless_allow_listed"])
def test_private_addresses_are_refused(url: str) -> None:
    """B077"""
    with pytest.raises(Refused):
        Guard().check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://[::]:80/", "http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/",
        "http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/", "http://100.64.0.1/", "http://224.0.0.1/",
        "http://192.168.1.1/", "http://[fe80::1]/", "http://0/", "http://[::ffff:10.0.0.1]/",
        "http://", "http:///x", "http://a:99999/", "http://[bad/", "javascript:alert(1)", "//example.org/x", "",
    ],
)  # fmt: skip
def test_further_writings(url: str) -> None:
    with pytest.raises(Refused):
        Guard().check_url(url)


def test_public_addresses_pass() -> None:
    for address in ("93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "64:ff9b::5db8:d70e"):
        Guard().check_address("example.org", 443, ipaddress.ip_address(address))


@pytest.mark.parametrize(
    ("allow", "url", "passes"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000/hook", True),
        ("127.0.0.1:8000", "http://127.0.0.1:8001/hook", False),
        ("127.0.0.1:8000", "http://2130706433:8000/hook", False),
        ("127.0.0.1", "http://127.0.0.1:8001/hook", True),
        ("127.0.0.0/8", "http://127.1:8001/hook", True),
        ("10.0.0.0/8", "http://10.0.0.5/hook", True),
        ("10.0.0.0/8", "http://127.0.0.1/hook", False),
        ("localhost:5678", "http://LOCALHOST:5678/x", True),
        ("[::1]:8000", "http://[::1]:8000/x", True),
        ("fd00::/8", "http://[fd00::1]/x", True),
        ("10.0.0.5:80", "http://10.0.0.5/hook", True),
        ("10.0.0.5:443", "https://10.0.0.5/hook", True),
        ("10.0.0.5:443", "http://10.0.0.5/hook", False),
    ],
)
def test_the_allow_list_opens_what_it_names_and_nothing_else(allow: str, url: str, passes: bool) -> None:
    if passes:
        Guard([allow]).check_url(url)
    else:
        with pytest.raises(Refused):
            Guard([allow]).check_url(url)


def test_a_name_on_the_allow_list_is_open_on_its_port_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "resolve", lambda host, port: [ipaddress.ip_address("10.1.2.3")])
    Guard(["n8n.internal:5678"]).check_url("http://n8n.internal:5678/webhook/x")
    for url in ("http://n8n.internal:6379/", "http://other.internal:5678/"):
        with pytest.raises(Refused, match="BOARD_ALLOW_PRIVATE_TARGETS"):
            Guard(["n8n.internal:5678"]).check_url(url)


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "fd00:ec2::254", "100.100.100.200",
                                     "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"])  # fmt: skip
def test_metadata_addresses_never(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setattr(guard, "resolve", lambda host, port: [ipaddress.ip_address(address)])
    everything = ["0.0.0.0/0", "::/0", "meta.internal", "meta.internal:80"]
    with pytest.raises(Refused, match="never called"):
        Guard(everything).check_url("http://meta.internal/latest")


def test_one_private_address_among_public_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "resolve", lambda host, port: [PUBLIC, ipaddress.ip_address("10.0.0.1")])
    with pytest.raises(Refused):
        Guard().check_url("http://twofaced.example.org/")
