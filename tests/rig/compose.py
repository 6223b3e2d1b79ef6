"""compose.yaml without containers: its services as Compose sees them, their commands and health checks as processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
_NAMED = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


def env_file(folder: Path) -> dict[str, str]:
    """What `make env` writes, as Compose reads it."""
    file = folder / ".env"
    subprocess.run([sys.executable, ROOT / "deploy" / "env.py", file], check=True, capture_output=True)
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def filled(value: Any, names: Mapping[str, str]) -> Any:
    """With every ${NAME}, ${NAME:-else} and ${NAME:?must be there} replaced, as Compose does it."""
    if isinstance(value, dict):
        return {key: filled(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    return _NAMED.sub(lambda found: _value(found, names), value) if isinstance(value, str) else value


def _value(found: re.Match[str], names: Mapping[str, str]) -> str:
    name, kind, rest = found.groups()
    if names.get(name):
        return names[name]
    assert kind == "-", f"{name} is not in .env"
    return str(rest)


def services(names: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Every service, filled in."""
    read = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    found: dict[str, dict[str, Any]] = filled(read["services"], names)
    return found


def moved(value: Any, moves: Mapping[str, str]) -> Any:
    """With addresses of containers replaced by those of processes on this machine."""
    for old, new in moves.items():
        if isinstance(value, dict):
            value = {key: moved(item, {old: new}) for key, item in value.items()}
        elif isinstance(value, list):
            value = [moved(item, {old: new}) for item in value]
        elif isinstance(value, str):
            value = value.replace(old, new)
    return value


def environment(service: Mapping[str, Any], moves: Mapping[str, str]) -> dict[str, str]:
    """What a process of the service sees: the service's own names, and of this machine only what programs need."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, **moved(service.get("environment", {}), moves)}


def healthy(service: Mapping[str, Any], moves: Mapping[str, str], *programs: Path) -> subprocess.CompletedProcess[str]:
    """One run of its health check. programs: folders in which its image has what is called."""
    test = moved(service["healthcheck"]["test"], moves)
    assert test[0] in ("CMD", "CMD-SHELL")
    command = test[1:] if test[0] == "CMD" else ["sh", "-c", test[1]]
    env = environment(service, moves)
    env["PATH"] = ":".join([*map(str, programs), env["PATH"]])
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=False)
