"""The built-in stand-in for Dify, on a real port."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.rig.asgi import serve


@dataclass(frozen=True)
class RunningStandin:
    """url: the address without a path, `api_url` the one for a connection of kind dify. app: the stand-in itself, in
    this process; `app.state.runs` and `app.state.requests` tell what it saw."""

    url: str
    app: Any

    @property
    def api_url(self) -> str:
        return f"{self.url}/v1"


@pytest.fixture
def dify_standin() -> Iterator[RunningStandin]:
    """A stand-in for Dify with a memory of its own."""
    from integrations.demo.dify_app import create_app

    app = create_app()
    with serve(app) as url:
        yield RunningStandin(url, app)
