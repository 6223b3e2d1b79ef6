"""What happens when something a test needs is not on this machine."""

import os
from typing import NoReturn

import pytest


def missing(what: str, remedy: str) -> NoReturn:
    """Skip the test by name, or fail it under `CI=true`: a check that did not run must not look green."""
    message = f"{what} is not available: {remedy}"
    if os.environ.get("CI") == "true":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
