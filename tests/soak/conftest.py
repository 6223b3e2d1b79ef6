"""A soak goes on for long; a plain run takes a short form of it. `make soak` sets BOARD_TEST_SOAK."""

import pytest

from tests.soak import LONGER
from tests.worker.conftest import worker  # noqa: F401

# Of the soaks with real processes a plain run takes these, the first of each kind of queue; the others take too long.
SHORT = {
    "test_shares_hold_and_nothing_is_lost_or_done_twice_while_workers_are_killed": {
        ("sqlite", "ledger"),
        ("postgresql", "redis"),
    },
    "test_eight_workers_and_eight_callers_on_one_sqlite_file": set[tuple[str, str]](),  # short: tests/api
}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if LONGER > 1:
        return
    if left_out := [item for item in items if not _short(item)]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if _short(item)]


def _short(item: pytest.Item) -> bool:
    name = getattr(item, "originalname", item.name)
    if name not in SHORT:
        return True
    callspec = getattr(item, "callspec", None)
    params = callspec.params if callspec is not None else {}
    return (params.get("database_url"), params.get("queue")) in SHORT[name]
