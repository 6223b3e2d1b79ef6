"""The node package (integrations/n8n/node), built and checked by the tools that n8n has for that."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.n8n.server import home
from tests.rig.need import missing

SOURCE = Path(__file__).parents[2] / "integrations" / "n8n" / "node"


class NodePackage:
    """A copy of the sources, beside the tools that its package.json names; `dist` once it is built."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "package"
        tools = home() / "node-tools" / "node_modules"
        [*nodes] = home().glob("node/node_modules/node-linux-*/bin")
        if not nodes or not tools.exists():
            missing("what builds the node package for n8n", "make install-n8n")
        shutil.copytree(SOURCE, self.folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
        (self.folder / "node_modules").symlink_to(tools)
        self._path = f"{nodes[0]}:{tools / '.bin'}:{os.environ['PATH']}"

    def run(self, command: str) -> str:
        """`n8n-node build` or `lint`; what it said. AssertionError where it fails."""
        done = subprocess.run(
            ["n8n-node", command],
            cwd=self.folder,
            env={**os.environ, "PATH": self._path, "CI": "true"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0, f"n8n-node {command}:\n{said[-4000:]}"
        return said
