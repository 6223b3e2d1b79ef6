"""Which addresses may be called, however they are written."""

import ipaddress
import json
from pathlib import Path

import pytest

from board.effects import guard
from board.effects.guard import Guard, check_never
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


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost./", "http://127.0.0.1./", "http://LOCALHOST/", "http://１２７.0.0.1/", "http://127。0。0。1/",
        "http://①②⑦.⓪.⓪.①/", "http://017700000001/", "http://0x7f.1/", "http://[::ffff:0:127.0.0.1]/",
        "http://[::ffff:8.8.8.8]/", "http://[64:ff9b::808:808]/", "http://[64:ff9b:1::1]/", "http://[2002:808:808::1]/",
        "http://[fec0::1]/", "http://[fe80::1%25eth0]/", "http://[ff02::1]/", "http://[2001:db8::1]/",
        "http://[3fff::1]/", "http://192.88.99.1/", "http://192.0.0.9/", "http://198.18.0.1/", "http://240.0.0.1/",
        "http://255.255.255.255/", "http://8.8.8.8\\@127.0.0.1/", "http://127.0.0.1\\@8.8.8.8/", "http://8.8.8.8/\n",
        "http://8.8.8.8 /", "http://8.8.8.8@/", "http://a@8.8.8.8/", "http://:p@8.8.8.8/", "http://.", "http://8.8.8.8:/",
    ],
)  # fmt: skip
def test_writings_that_hide_a_host(url: str) -> None:
    """Wrapped addresses, other digits, the dot of the root, other blocks that are nobody's, user names."""
    if url == "http://8.8.8.8:/":  # an empty port is the usual one
        Guard().check_url(url)
        return
    with pytest.raises(Refused):
        Guard().check_url(url)


def test_an_address_translated_for_a_network_without_ipv4_is_the_address_it_means() -> None:
    public, private = ipaddress.ip_address("64:ff9b::5db8:d70e"), ipaddress.ip_address("64:ff9b::a00:1")
    Guard().check_address("example.org", 443, public)
    with pytest.raises(Refused):
        Guard().check_address("example.org", 443, private)
    Guard(["10.0.0.0/8"]).check_address("example.org", 443, private)
    Guard(["64:ff9b::/96"]).check_address("example.org", 443, private)


@pytest.mark.parametrize("port", [0, 22, 25, 53, 143, 587, 6667])
def test_ports_of_other_protocols_are_not_called_unless_named(port: int) -> None:
    url = f"http://93.184.215.14:{port}/"
    with pytest.raises(Refused, match=f"add 93.184.215.14:{port} to BOARD_ALLOW_PRIVATE_TARGETS"):
        Guard(["10.0.0.0/8", "93.184.215.14:80"]).check_url(url)
    Guard([f"93.184.215.14:{port}"]).check_url(url)


@pytest.mark.parametrize("port", [80, 443, 5678, 8000, 8443])
def test_usual_ports_are_open(port: int) -> None:
    Guard().check_url(f"https://93.184.215.14:{port}/hook")


@pytest.mark.parametrize("host", ["metadata.google.internal", "METADATA.google.internal.", "metadata.goog"])
def test_names_of_metadata_services_are_refused_before_they_resolve(host: str) -> None:
    with pytest.raises(Refused, match="never called"):
        Guard([host, "0.0.0.0/0"]).check_url(f"http://{host}/")
    with pytest.raises(Refused, match="never called"):
        check_never(f"http://{host}/")


@pytest.mark.parametrize("host", ["169.254.169.254", "0xa9fea9fe", "2852039166", "[fe80::1]", "168.63.129.16",
                                  "[::ffff:169.254.1.1]", "[fd00:ec2::254]", "169.254.169.254."])  # fmt: skip
def test_nobody_can_allow_these(host: str) -> None:
    with pytest.raises(Refused, match="never called"):
        check_never(f"http://{host}/v1")


@pytest.mark.parametrize("host", ["10.0.0.5", "127.0.0.1:8000", "dify.internal", "[fd00::1]", "localhost:25"])
def test_a_connection_may_be_private(host: str) -> None:
    check_never(f"http://{host}/v1")


def test_a_dot_at_the_end_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "resolve", lambda host, port: [ipaddress.ip_address("10.1.2.3")])
    Guard(["n8n.internal:5678"]).check_url("http://n8n.internal.:5678/")
    Guard(["n8n.internal.:5678"]).check_url("http://N8N.internal:5678/")
