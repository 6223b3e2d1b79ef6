"""Which candidates of one claim find a place when more are asked for than there are slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import RowMapping

from board.db.engine import Database
from board.queue.ledger_queue import LedgerQueue
from board.tasks.ledger import Ledger
from tests.heart import gate, settable_clock
from tests.queue.conftest import Hall


def swift(row: RowMapping) -> bool:
    return bool(row["type"] == "quick")


@pytest.fixture
def line(database_url: str) -> Iterator[Hall]:
    """The ledger's own queue, which is the one that claims ahead."""
    db, ledger = Database(database_url), Ledger()
    with closing(db), settable_clock(db) as at:
        yield Hall(db, ledger, LedgerQueue(db, ledger, gate(db, ledger)), at)


def names(prefix: str, number: int) -> list[str]:
    return [f"{prefix}-{place}" for place in range(number)]


def test_quick_work_needs_no_slot(line: Hall) -> None:
    line.put(*names("q", 9), type="quick")
    assert line.claim(2, ahead=5, swift=swift) == names("q", 7)
    assert line.claim(0, ahead=5, swift=swift) == ["q-7", "q-8"]


def test_other_work_gets_a_slot_or_stays_in_line_and_is_not_overtaken(line: Hall) -> None:
    line.put(*names("q", 3), type="quick")
    line.put(*names("s", 3))
    line.put("q-last", type="quick")
    assert line.claim(2, ahead=20, swift=swift) == [*names("q", 3), "s-0", "s-1"]
    assert line.claim(0, ahead=20, swift=swift) == []
    assert line.claim(2, ahead=20, swift=swift) == ["s-2", "q-last"]


def test_the_slot_for_rush_orders_is_kept(line: Hall) -> None:
    line.put(*names("s", 3))
    assert line.claim(2, 1, ahead=20, swift=swift) == ["s-0"]
    line.put(*names("rush", 3), lane=0)
    assert line.claim(2, 1, ahead=20, swift=swift) == ["rush-0", "rush-1"]


def test_the_shares_hold_for_what_is_claimed_ahead(line: Hall) -> None:
    for lane in range(4):
        line.put(*names(f"P{lane}", 30), lane=lane, type="quick")
    assert Counter(name[:2] for name in line.claim(4, ahead=20, swift=swift)) == {"P0": 16, "P1": 5, "P2": 2, "P3": 1}


def test_without_it_nothing_is_claimed_beyond_the_slots(line: Hall) -> None:
    line.put(*names("q", 9), type="quick")
    assert len(line.claim(2, swift=swift)) == 2
