"""Which addresses the board may call: the one rule, asked when a task is made and again at each call."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

from board.ports import Refused

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

# Never, whatever is allowed: link-local, and the addresses at which clouds hand out credentials.
_NEVER = [
    ipaddress.ip_network(text) for text in ("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "100.100.100.200/32")
]
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Guard:
    """allow: `host`, `host:port` or a network in CIDR form, as in BOARD_ALLOW_PRIVATE_TARGETS.

    An entry opens private addresses, for that host, port or network only; everything else stays shut.
    """

    def __init__(self, allow: Sequence[str] = ()) -> None:
        self._networks = [ipaddress.ip_network(item, strict=False) for item in allow if "/" in item]
        self._hosts = {item.lower() for item in allow if "/" not in item}

    def split(self, url: str) -> tuple[str, int]:
        """Host and port of an address that may be called at all. Raises Refused."""
        try:
            parts = urlsplit(url)
            port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
        except ValueError as error:
            raise Refused(f"“{url}” is not a valid address.") from error
        if parts.scheme not in ("http", "https"):
            raise Refused("Only http:// and https:// addresses can be called.")
        if parts.username is not None or parts.password is not None:
            raise Refused("The address may not carry a user name or password; use the connection's auth instead.")
        if not parts.hostname:
            raise Refused("The address has no host.")
        return parts.hostname, port

    def check_url(self, url: str) -> None:
        """Refuse an address at the door, as far as can be told now. A name that does not resolve yet may pass."""
        host, port = self.split(url)
        for address in resolve(host, port):
            self.check_address(host, port, address)

    def check_address(self, host: str, port: int, address: IpAddress) -> None:
        """Refuse a resolved address unless it is public or allowed. Raises Refused, naming what to set."""
        real = inner(address)
        if any(real.version == network.version and real in network for network in _NEVER):
            raise Refused(f"{host} is a link-local or metadata address; those are never called.")
        if real.is_global and not real.is_multicast:
            return
        name = host.lower()
        written = f"[{name}]" if ":" in name else name
        if not self._hosts.isdisjoint((name, written, f"{written}:{port}")):
            return
        if any(real.version == network.version and real in network for network in self._networks):
            return
        raise Refused(
            f"{written}:{port} is a private address. To allow it, add {written}:{port} to BOARD_ALLOW_PRIVATE_TARGETS."
        )


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
        if 1 < int(address) < 2**32:  # the old IPv4-compatible form
            return ipaddress.IPv4Address(int(address))
    return address


def resolve(host: str, port: int) -> list[IpAddress]:
    """Every address of a host; odd writings such as 0x7f000001 or 127.1 are read as the system would read them."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [ipaddress.ip_address(str(item[4][0]).split("%")[0]) for item in found]
