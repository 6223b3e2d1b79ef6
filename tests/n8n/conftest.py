"""Tests against a real n8n: `make test-n8n`. A plain `make test` leaves them out, because n8n has to be installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.n8n.board import TheBoard
from tests.n8n.package import NodePackage
from tests.n8n.server import OLD, SAMPLES, Flows, N8n
from tests.rig.board import API_KEY
from tests.rig.reaper import Reaper, new_folder

# The address by which n8n calls itself in one test, and which leads nowhere.
ELSEWHERE = "http://n8n.invalid:5678"
SECRET = "the secret of the connection n8n-publish"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return None if config.getoption("--n8n") else True


@pytest.fixture(scope="session")
def node_package(reaper: Reaper) -> NodePackage:
    """The board's own nodes for n8n, built."""
    folder = new_folder()
    reaper.folder(folder)
    package = NodePackage(folder)
    package.run("build")
    return package


@pytest.fixture(scope="session")
def n8n(reaper: Reaper, node_package: NodePackage) -> Iterator[N8n]:
    """One n8n for the whole run, with the board's own nodes. Every sample flow lies in it, imported as shipped."""
    folder = new_folder()
    reaper.folder(folder)
    server = N8n(folder, reaper, packages=[node_package.folder])
    server.command("import:workflow", "--separate", f"--input={SAMPLES}")
    server.start()
    server.credential("Board API key", "httpHeaderAuth", {"name": "X-API-Key", "value": API_KEY})
    if not OLD:  # whose Crypto node knows no credential
        server.credential("Board webhook secret", "crypto", {"hmacSecret": SECRET})
    yield server
    server.stop()


@pytest.fixture(scope="session")
def board(reaper: Reaper, n8n: N8n) -> Iterator[TheBoard]:
    """One board for the whole run, with the task types of the sample flows; their grace times are over at once."""
    folder = new_folder()
    reaper.folder(folder)
    env = {
        "BOARD_LEASE": "5s",  # as often it looks for claims that were lost
        "BOARD_CALLBACK_REWRITE": f"{ELSEWHERE}={n8n.url}",
    }
    served = TheBoard(folder, reaper, env)
    served.start()
    text = (SAMPLES / "types.yaml").read_text("utf-8").replace("grace: 10s", "grace: 0s")
    text = text.replace("${N8N_PUBLISH_URL}", f"{n8n.url}/webhook/board-publish").replace("${N8N_SECRET}", SECRET)
    served.post("/types", yaml.safe_load(text)).raise_for_status()
    yield served
    served.close()


@pytest.fixture
def flows(n8n: N8n) -> Iterator[Flows]:
    """The flows of this test; they are switched off when it ends."""
    made = Flows(n8n)
    yield made
    made.close()
