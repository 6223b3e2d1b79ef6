"""What every test would find out anew, and always finds alike."""

from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points

import pytest


@pytest.fixture(scope="session", autouse=True)
def _packages() -> Iterator[None]:
    """Which packages bring handlers: no test installs one for its own process, and to look through all of them for
    each board takes about as long as a short test does."""
    found = cache(entry_points)
    with pytest.MonkeyPatch.context() as patch:
        for module in ("board.worker.registry", "board.files.storage", "board.demo"):
            patch.setattr(f"{module}.entry_points", found)
        yield
