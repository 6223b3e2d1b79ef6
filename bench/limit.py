"""The limit that PostgreSQL sets: pgbench claims and ends the same rows by the shortest statements, no worker."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from pathlib import Path

from sqlalchemy.engine import make_url

BATCH = 50  # tasks a transaction, as in limit.sql
CLIENTS = 4
SCRIPT = Path(__file__).with_name("limit.sql")


def pgbench(programs: Path | None) -> Path | None:
    """The program: that of the server, or one on the PATH."""
    beside = programs / "pgbench" if programs else None
    if beside is not None and beside.exists():
        return beside
    found = shutil.which("pgbench")
    return Path(found) if found else None


def drain(program: Path, url: str, count: int) -> float:
    """Claim and end so many waiting tasks; the CPU seconds that pgbench itself took. count: a multiple of 200."""
    place = make_url(url)
    env = os.environ | {
        "PGHOST": place.host or "127.0.0.1",
        "PGPORT": str(place.port or 5432),
        "PGUSER": place.username or "",
        "PGPASSWORD": str(place.password or ""),
    }
    before = _children_cpu()
    command = [str(program), "--no-vacuum", f"--client={CLIENTS}", f"--jobs={CLIENTS}", "--protocol=prepared"]
    each = count // (BATCH * CLIENTS)
    ran = subprocess.run(
        [*command, f"--transactions={each}", f"--file={SCRIPT}", place.database or ""],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(f"pgbench failed:\n{ran.stderr[-2000:]}")
    return _children_cpu() - before


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
