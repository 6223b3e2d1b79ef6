"""Crashes on purpose. `make chaos` runs every one; a plain run takes those that `SHORT` names."""

import pytest

from tests.rig.mail import mail_server, open_mail_server

__all__ = ["mail_server", "open_mail_server"]

# Each point once, and on each database what matters most there: a call that is out, and one whose answer is known.
SHORT = {
    "test_a_receiver_that_knows_no_repeats": {
        ("sqlite", "before_reserve"),
        ("sqlite", "after_reserve"),
        ("postgresql", "after_send"),
        ("sqlite", "in_close"),
        ("sqlite", "after_close"),
    },
    "test_a_receiver_that_drops_repeats": {("sqlite", "after_send")},
    "test_a_receiver_that_can_be_asked": {("sqlite", "after_reserve"), ("postgresql", "before_close")},
    "test_a_flow_that_waits": {("sqlite", "after_reserve"), ("postgresql", "after_send")},
    "test_word_to_the_caller": {("postgresql", "noted"), ("sqlite", "in_writing"), ("postgresql", "told")},
    "test_word_to_a_subscription": {("postgresql", "announced"), ("sqlite", "in_fan_out")},
    "test_a_mail": {("sqlite", "after_send"), ("postgresql", "after_reference")},
    "test_a_run_in_dify": {("sqlite", "after_reserve"), ("sqlite", "after_send"), ("postgresql", "after_reference")},
}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--chaos"):
        return
    if left_out := [item for item in items if not _short(item)]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if _short(item)]


def _short(item: pytest.Item) -> bool:
    """Whether a plain run takes it; everything that is no crash of ours is taken."""
    callspec = getattr(item, "callspec", None)
    name = getattr(item, "originalname", item.name)
    if name not in SHORT or callspec is None:
        return True
    return (callspec.params.get("database_url"), callspec.params.get("point")) in SHORT[name]
