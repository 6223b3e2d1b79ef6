"""What processes use: CPU seconds and memory, from /proc. On a busy machine CPU says more than the clock."""

from __future__ import annotations

import os
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """What a process has computed so far in all its threads, without its children."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_mb(pid: int) -> float:
    """The memory of a process that is in use, shared libraries included, in MB (10^6 bytes)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ProcessLookupError(pid)


class PostgresMeter:
    """The CPU seconds of a whole PostgreSQL server, its ended connections included.

    known: whether the server runs on this machine; where it does not, its CPU is not measured.
    """

    def __init__(self, url: str) -> None:
        with psycopg.connect(make_conninfo(url)) as connection:
            row = connection.execute("SELECT pg_backend_pid()").fetchone()
            assert row is not None
            self._server = _postmaster(int(row[0]))
        self.known = self._server is not None

    def seconds(self) -> float:
        """So far; not a number where it is not known."""
        if self._server is None:
            return float("nan")
        fields = _stat(self._server)
        # 11 to 14: of the server itself, and of its children that have ended.
        ended = sum(int(field) for field in fields[11:15]) / _TICKS
        return ended + sum(_cpu_or_none(pid) for pid in _children(self._server))


def _postmaster(backend: int) -> int | None:
    """The parent of a connection's process. A process of another machine has perhaps no such number here."""
    try:
        if "postgres" not in Path(f"/proc/{backend}/comm").read_text():
            return None
        return int(_stat(backend)[1])
    except OSError:
        return None


def _children(parent: int) -> list[int]:
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if int(_stat(int(entry.name))[1]) == parent:
                    found.append(int(entry.name))
            except OSError:
                continue  # ended meanwhile
    return found


def _cpu_or_none(pid: int) -> float:
    try:
        return cpu_seconds(pid)
    except OSError:
        return 0.0  # ended meanwhile: from now on counted with the server


def _stat(pid: int) -> list[str]:
    """The fields behind the name, which may hold anything: state, parent, …"""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
