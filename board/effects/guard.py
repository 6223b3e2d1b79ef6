"""Which addresses the board may call: the one rule, asked when a task is made and again at each call."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

from board.ports import Refused

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_LINK_LOCAL = [ipaddress.ip_network(text) for text in ("169.254.0.0/16", "fe80::/10")]
# Where clouds hand out credentials (AWS, Alibaba, Azure, Oracle, Google); two of them are public addresses.
_METADATA = [
    ipaddress.ip_network(text)
    for text in ("fd00:ec2::254/128", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd20:ce::254/128")
]
_METADATA_NAMES = frozenset({"metadata", "metadata.google.internal", "metadata.goog"})
# Python calls these global: relays of 6to4, and the rest of a block for protocols (RFC 6890).
_NOT_PUBLIC = [ipaddress.ip_network(text) for text in ("192.88.99.0/24", "192.0.0.0/24", "3fff::/20")]
_PUBLIC_V6 = ipaddress.ip_network("2000::/3")  # all that IANA has given out as global unicast
_ROOT_DOT = re.compile(r"\.+(?=(:\d+)?$)")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# An HTTP call to these ports is never meant; it would speak to another protocol: mail, shells, chat (the list of the
# Fetch standard, "bad port"). An entry `host:port` in the allow-list opens one.
_BAD_PORTS = """
0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135
137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719
1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080
"""
_OTHER_PROTOCOLS = frozenset(int(port) for port in _BAD_PORTS.split())


class Guard:
    """allow: `host`, `host:port` or a network in CIDR form, as in BOARD_ALLOW_PRIVATE_TARGETS.

    An entry opens private addresses, for that host, port or network only; everything else stays shut.
    """

    def __init__(self, allow: Sequence[str] = ()) -> None:
        self._networks = [ipaddress.ip_network(item, strict=False) for item in allow if "/" in item]
        self._hosts = {_ROOT_DOT.sub("", item.lower()) for item in allow if "/" not in item}

    def split(self, url: str) -> tuple[str, int]:
        """Host and port of an address that may be called at all. Raises Refused."""
        host, port = host_and_port(url)
        name = written(host)
        if port in _OTHER_PROTOCOLS and self._hosts.isdisjoint((plain(host), name, f"{name}:{port}")):
            raise Refused(
                f"Port {port} belongs to another protocol than HTTP. If it is meant, add {name}:{port} to "
                "BOARD_ALLOW_PRIVATE_TARGETS."
            )
        return host, port

    def check_url(self, url: str) -> None:
        """Refuse an address at the door, as far as can be told now. A name that does not resolve yet may pass."""
        host, port = self.split(url)
        if plain(host) in _METADATA_NAMES:
            raise Refused(_never(host))
        for address in resolve(host, port):
            self.check_address(host, port, address)

    def check_address(self, host: str, port: int, address: IpAddress) -> None:
        """Refuse a resolved address unless it is public or allowed. Raises Refused, naming what to set."""
        real = inner(address)
        _refuse_never(host, address, real)
        if is_public(real) and (real == address or _translated(host, address)):
            return
        name = written(host)
        if not self._hosts.isdisjoint((plain(host), name, f"{name}:{port}")):
            return
        if any(_within(each, network) for network in self._networks for each in (real, address)):
            return
        raise Refused(
            f"{name}:{port} is not a public address. To allow it, add {name}:{port} to BOARD_ALLOW_PRIVATE_TARGETS."
        )


def check_never(url: str) -> None:
    """Refuse what nobody can allow: link-local and metadata addresses, as far as that shows without a name server.

    For a connection, whose own host and port are allowed by making it. Raises Refused.
    """
    host = urlsplit(url).hostname or "" if url.startswith("smtp") else host_and_port(url)[0]
    if plain(host) in _METADATA_NAMES:
        raise Refused(_never(host))
    if (address := literal(host)) is not None:
        _refuse_never(host, address, inner(address))


def host_and_port(url: str) -> tuple[str, int]:
    """What an http or https address leads to. Raises Refused when it is none, or carries a user name or password."""
    try:
        if any(character.isspace() or not character.isprintable() or character == "\\" for character in url):
            raise ValueError  # Python cuts some of them out, other readers end the host there
        parts = urlsplit(url)
        port = {"http": 80, "https": 443}.get(parts.scheme, 0) if parts.port is None else parts.port
    except ValueError as error:
        raise Refused("This is not a valid address.") from error
    if parts.scheme not in ("http", "https"):
        raise Refused("Only http:// and https:// addresses can be called.")
    if parts.username is not None or parts.password is not None:
        raise Refused("The address may not carry a user name or password; use the connection's auth instead.")
    if not plain(parts.hostname or ""):
        raise Refused("The address has no host.")
    return str(parts.hostname), port


def is_public(address: IpAddress) -> bool:
    """Whether the address belongs to the internet: neither private nor reserved, for one receiver alone."""
    if isinstance(address, ipaddress.IPv6Address) and address not in _PUBLIC_V6:
        return False
    if address.is_multicast or any(_within(address, network) for network in _NOT_PUBLIC):
        return False
    return address.is_global


def inner(address: IpAddress) -> IpAddress:
    """The IPv4 address that is wrapped in an IPv6 one (mapped, NAT64, 6to4, Teredo), else the address itself."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if address.sixtofour:
            return address.sixtofour
        if address.teredo:
            return address.teredo[1]
        if 1 < int(address) < 2**32 or int(address) >> 32 == 0xFFFF0000:  # IPv4-compatible, and IPv4-translated
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def plain(host: str) -> str:
    """A host as it is compared: lower case, without the dot of the root and the zone of an address."""
    return host.lower().partition("%")[0].rstrip(".")


def written(host: str) -> str:
    """A host as it stands in an address, ready for `:port`."""
    return f"[{plain(host)}]" if ":" in host else plain(host)


def resolve(host: str, port: int) -> list[IpAddress]:
    """Every address of a host; odd writings such as 0x7f000001 or 127.1 are read as the system would read them."""
    try:
        found = socket.getaddrinfo(plain(host), port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [ipaddress.ip_address(item[4][0]) for item in found]


def literal(host: str) -> IpAddress | None:
    """The address that a host is by itself, in whatever writing; None for a name. No name server is asked."""
    try:
        found = socket.getaddrinfo(plain(host), None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return None
    return ipaddress.ip_address(found[0][4][0])


def _translated(host: str, address: IpAddress) -> bool:
    """A name whose IPv4 address a network without IPv4 has translated (DNS64): the one honest use of a wrapped one."""
    return _within(address, _NAT64) and literal(host) is None


def _refuse_never(host: str, *addresses: IpAddress) -> None:
    if any(_within(each, network) for network in (*_LINK_LOCAL, *_METADATA) for each in addresses):
        raise Refused(_never(host))


def _never(host: str) -> str:
    return f"{plain(host)} is a link-local or metadata address; those are never called."


def _within(address: IpAddress, network: _Network) -> bool:
    return address.version == network.version and address in network
