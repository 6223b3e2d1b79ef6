"""When a failure is tried again."""

from typing import Any

import pytest

from board.catalogue.spec import RetrySpec
from board.ports import Cause, ErrorClass, Failure
from board.worker.retry import LONGEST_ASKED, delay

SPEC = RetrySpec.model_validate({"base": "5s", "cap": "10m"})


def pauses(retries: int, error_class: ErrorClass = ErrorClass.TRANSIENT, **fields: Any) -> list[float]:
    failure = Failure(error_class, Cause.NETWORK, "x", **fields)
    return [delay(failure, SPEC, retries) for _ in range(300)]


@pytest.mark.parametrize(("retries", "full"), [(0, 5), (1, 10), (2, 20), (6, 320), (7, 600), (99, 600)])
def test_doubles_up_to_the_cap_with_jitter_down_to_half(retries: int, full: float) -> None:
    seen = pauses(retries)
    assert full / 2 <= min(seen) < full * 0.6
    assert full * 0.9 < max(seen) <= full


def test_a_quota_waits_four_times_as_long() -> None:
    seen = pauses(0, ErrorClass.QUOTA)
    assert min(seen) >= 10
    assert 15 < max(seen) <= 20


@pytest.mark.parametrize("error_class", [ErrorClass.TRANSIENT, ErrorClass.QUOTA])
def test_never_before_retry_after(error_class: ErrorClass) -> None:
    assert min(pauses(0, error_class, retry_after=90.0)) == 90.0
    assert max(pauses(0, error_class, retry_after=0.0)) > 0


@pytest.mark.parametrize("asked", [float("nan"), -5.0, float("inf"), 1e300])
def test_a_senseless_retry_after_does_no_harm(asked: float) -> None:
    seen = pauses(0, retry_after=asked)
    assert all(2.5 <= pause <= LONGEST_ASKED for pause in seen)
