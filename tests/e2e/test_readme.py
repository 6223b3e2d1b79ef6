"""The first task of the README is carried out as it is written there, against a running board."""

import re
import shlex
import subprocess
from pathlib import Path

from tests.rig.board import StartBoard, board_command, board_environment

README = Path(__file__).parents[2] / "README.md"
WALK = "## A first task in five minutes"
ADDRESS = "http://127.0.0.1:8000"
MARK = "=== next block ==="


def blocks(section: str) -> list[tuple[str, str]]:
    """The section's fenced blocks as (language, text)."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def steps() -> list[tuple[str, list[str]]]:
    """Each block of commands with the lines that the README shows after it."""
    section = README.read_text(encoding="utf-8").split(WALK)[1].split("\n## ")[0]
    found: list[tuple[str, list[str]]] = []
    for language, text in blocks(section):
        if language == "sh":
            found.append((text, []))
        else:
            found[-1][1].extend(text.splitlines())
    return found


def pattern(line: str) -> str:
    """A shown line as a regular expression: `…` with the space around it stands for anything."""
    return ".*?".join(re.escape(part) for part in re.split(r" ?… ?", line))


def test_the_first_task_runs_as_the_readme_says(board_process: StartBoard, tmp_path: Path) -> None:
    walk = steps()
    assert len(walk) >= 6, "the README's walk-through was not found"
    board = board_process("up")
    script = f"\necho '{MARK}'\n".join(commands for commands, _ in walk).replace(ADDRESS, board.url)
    shim = tmp_path / ".venv" / "bin" / "board"  # where the README looks for the command
    shim.parent.mkdir(parents=True)
    shim.write_text(f'#!/bin/sh\nexec {shlex.join(board_command())} "$@"\n')
    shim.chmod(0o755)
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=board_environment(tmp_path, {"no_proxy": "127.0.0.1"}),
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    outputs = ran.stdout.split(MARK)
    assert len(outputs) == len(walk)
    for (commands, shown), output in zip(walk, outputs, strict=True):
        rest = output.splitlines()
        for line in shown:
            while rest and not re.search(pattern(line), rest[0]):
                del rest[0]
            assert rest, f"{commands}\nshould show:\n{line}\nbut said:\n{output}"
            del rest[0]
