"""The fixtures that every test may use; each is described where it lives, in tests/rig."""

import pytest

pytest_plugins = [
    "tests.rig.parallel",
    "tests.rig.once",
    "tests.rig.reaper",
    "tests.rig.postgres",
    "tests.rig.valkey",
    "tests.rig.databases",
    "tests.rig.receiver",
    "tests.rig.board",
    "tests.rig.browser",
    "tests.rig.standin",
    "tests.rig.working",
    "tests.rig.proxy",
    "tests.rig.trial_package",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--chaos", action="store_true", help="every crash of tests/chaos, not only the short form")
    parser.addoption("--n8n", action="store_true", help="tests/n8n, which needs an installed n8n (make test-n8n)")
