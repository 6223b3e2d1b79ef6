"""Nothing goes round the door: no module of ours but the door itself holds a client, or opens a connection."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What can call others, by the beginning of its name. The linter sees packages only, not parts of the standard library.
CLIENTS = (
    "aiohttp", "aiosmtplib", "asyncio.open_connection",
    "ftplib", "http.client", "httpcore", "httpx", "httpx2", "pycurl", "requests", "smtplib",
    "socket.create_connection", "socket.getaddrinfo", "telnetlib", "urllib.request", "urllib3", "websockets", "xmlrpc",
)  # fmt: skip
ALLOWED = {  # the door and its look at the name server, and where we listen
    "board/effects/http.py": {"httpcore", "httpx"},
    "board/effects/guard.py": {"socket.getaddrinfo"},
    "board/serve.py": {"socket.getaddrinfo"},
    "integrations/mail/smtp.py": {"aiosmtplib"},  # mail is no HTTP; its server is a connection that an owner has made
    # Runs inside Dify and calls the board; nothing of the board imports it.
    "integrations/dify/plugin/board_client.py": {"http.client", "urllib.request"},
}


def used(source: str) -> Iterator[str]:
    """Every module that is imported, and every attribute of one, as dotted names."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"


def clients_in(source: str) -> set[str]:
    return {client for name in used(source) for client in CLIENTS if name == client or name.startswith(f"{client}.")}


FILES = sorted(path for room in ("board", "integrations") for path in (ROOT / room).rglob("*.py"))


def test_there_are_files_to_look_at() -> None:
    assert len(FILES) > 100
    assert all((ROOT / name).exists() for name in ALLOWED)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_other_way_out(path: Path) -> None:
    """B077: a check that one caller forgets is none."""
    name = path.relative_to(ROOT).as_posix()
    assert clients_in(path.read_text("utf-8")) <= ALLOWED.get(name, set())


@pytest.mark.parametrize(
    "source",
    [
        "import httpx", "import httpx as h", "from requests import get", "import urllib.request",
        "from urllib.request import urlopen", "from http import client", "import http.client",
        "def f():\n    import aiohttp", "import asyncio\nasyncio.open_connection('x', 1)",
        "from asyncio import open_connection", "import socket\nsocket.create_connection(('x', 1))",
        "from urllib import request", "from socket import create_connection",
    ],
)  # fmt: skip
def test_a_way_round_would_be_seen(source: str) -> None:
    assert clients_in(source)
