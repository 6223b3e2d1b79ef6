import threading

import pytest

from board.access import throttle
from board.access.throttle import LIMIT, WINDOW, Throttle, TooManyTries


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_eleventh_try_waits_until_the_first_is_15_minutes_old() -> None:
    clock = Clock()
    brake = Throttle(clock)
    for _ in range(LIMIT):
        brake.begin("a@b.org")
        clock.now += 10
    with pytest.raises(TooManyTries, match="try again in 14 min") as caught:
        brake.begin("A@B.org ")
    assert caught.value.retry_after == WINDOW - 100
    assert caught.value.code == "too_many_sign_ins"
    clock.now += caught.value.retry_after
    brake.begin("a@b.org")
    with pytest.raises(TooManyTries):
        brake.begin("a@b.org")


def test_waiting_tries_do_not_lengthen_the_wait() -> None:
    clock = Clock()
    brake = Throttle(clock)
    for _ in range(LIMIT):
        brake.begin("a@b.org")
    for _ in range(5):
        clock.now += 100
        with pytest.raises(TooManyTries):
            brake.begin("a@b.org")
    clock.now += WINDOW - 500
    brake.begin("a@b.org")


def test_addresses_do_not_share_their_tries() -> None:
    brake = Throttle(Clock())
    for _ in range(LIMIT):
        brake.begin("a@b.org")
    brake.begin("b@b.org")


def test_success_starts_anew() -> None:
    brake = Throttle(Clock())
    for _ in range(3):
        for _ in range(LIMIT):
            brake.begin("a@b.org")
        brake.succeeded(" A@b.org")


def test_many_at_once_pass_no_further() -> None:
    brake, passed, start = Throttle(Clock()), [], threading.Barrier(20)

    def attempt() -> None:
        start.wait(30)
        try:
            brake.begin("a@b.org")
            passed.append(True)
        except TooManyTries:
            pass

    threads = [threading.Thread(target=attempt) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(passed) == LIMIT


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "_MOST_ADDRESSES", 3)
    brake = Throttle(Clock())
    for _ in range(LIMIT):
        brake.begin("a@b.org")
    for number in range(3):
        with pytest.raises(TooManyTries):  # an address that is tried again is not the one that is forgotten
            brake.begin("a@b.org")
        brake.begin(f"{number}@b.org")
    assert len(brake._tries) == 3
