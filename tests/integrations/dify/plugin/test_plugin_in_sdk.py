"""The plugin as Dify's own SDK reads and runs it. Runs where `dify_plugin` is installed (Python 3.12 or newer)."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from board.tools.verbs import VERBS
from tests.api.conftest import Api
from tests.integrations.dify.plugin.conftest import FOLDER


@pytest.mark.skipif(
    find_spec("dify_plugin") is None,
    reason="the SDK is not installed: pip install dify_plugin (Python 3.12 or newer)",
)
def test_the_sdk_accepts_the_plugin_loads_every_class_and_runs_a_tool(one_api: Api) -> None:
    script = Path(__file__).parent / "in_sdk.py"
    ran = subprocess.run(
        [sys.executable, script, one_api.url, one_api.key],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout.splitlines()[-1])
    assert said["tools"] == [verb.name for verb in VERBS]
    assert said["told"]["created"] is True
    assert said["text"] == "The task was filed."
    assert one_api.task("SDK-1")["payload"] == {"n": 1}
