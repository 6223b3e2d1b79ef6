"""A made-up fortnight, small enough to count by hand: 2026-W47 in short, 2026-W48 in full, zone UTC.

2026-W48 (from day 7 on; days are numbered from the Monday of W47):

| task | what happens in W48 |
|---|---|
| A1 | made Mon 09:00, runs 09:10 to 09:10:30, done |
| A2 | made Mon 09:00, runs 60 s, times out; waits 5 min; runs 90 s, done: one retry that ended done |
| A3 | made Tue, fails by an auth error (10 s); requeued Wed; fails by a 5xx (20 s): failed once, by the last |
| A4 | made Tue, fails without a cause; requeued; done: counts as failed and as done |
| A5 | made Thu, its worker dies three times over: two lost leases, then failed by a crash |
| B1 | asked Mon 10:00 with confidence 0.9, AI proposes approve; opened 10:30, approved 11:00 by Li: agreed |
| B2 | asked Mon 10:00 with 0.6; Wang opens it 10:15, Li 11:59:58 and approves with edits 12:00: overridden |
| B3 | asked Mon 10:00; rejected 10:30, undone at once, then approved 14:00: only the last counts; AI proposed reject |
| B4 | asked Tue 10:00 as a sample; rejected by Wang Tue 10:10; stays cancelled |
| B5 | asked in W47; its time is over Wed: cancelled by the timer |
| B6 | asked Sun 22:00, due Sun 23:00 and put off as overdue at 23:00:05; open at the end, with a title |
| B7 | asked Fri for an unknown outcome; still open at the end |
| B8 | asked Fri for an unknown outcome; it had happened, said Sat 10:00 |
| C1 | made Mon, cancelled by its caller Mon |
| C2 | done on Monday of W49, 00:00:00 sharp: not in W48; waits from Sun 23:00 to then |
| C3 | made in W47, ended at W48's Monday 00:00:00 sharp: in W48; its time in pending began in W47 |
| D1 | made Wed, aged Wed after 6 minutes, done within the hour; its deadline was missed |
"""

from __future__ import annotations

from sqlalchemy import Connection

from tests.reports.log import Story, at


def write(tx: Connection) -> None:
    _last_week(tx)
    _work(tx)
    _reviews(tx)
    _edges(tx)


def _last_week(tx: Connection) -> None:
    """W47: six done, five failed by a time-out (of which one retried before), one review of 2 h."""
    for number in range(6):
        made = at(1, number)
        Story(tx, f"L-done-{number}", made).start(made).end("done", "done", at(1, number, 10))
    for number in range(5):
        made = at(2, number)
        Story(tx, f"L-fail-{number}", made).start(made).end("failed", "failed", at(2, number, 5), cause="timeout")
    review = Story(tx, "L-review", at(3), "replies").start(at(3)).ask(at(3, 1))
    review.decide("approved", "pending", at(3, 3)).move("done", "done", at(3, 3, 10))


def _work(tx: Connection) -> None:
    Story(tx, "A1", at(7, 9)).start(at(7, 9, 600)).end(
        "done", "done", at(7, 9, 630), {"tokens": 100, "cost": "0.10 USD"}, passed="rules"
    )
    a2 = Story(tx, "A2", at(7, 9)).start(at(7, 9, 600))
    a2.end("retry_planned", "retrying", at(7, 9, 660), {"error_cause": "timeout", "tokens": 50}, cause="timeout")
    a2.start(at(7, 9, 960)).end("done", "done", at(7, 9, 1050), {"tokens": 150, "cost": "0.02 USD"}, passed="rules")
    a3 = (
        Story(tx, "A3", at(8)).start(at(8)).end("failed", "failed", at(8, 0, 10), {"error_cause": "auth"}, cause="auth")
    )
    a3.move("requeued", "pending", at(9), "person").start(at(9))
    a3.end("failed", "failed", at(9, 0, 20), {"error_cause": "upstream_5xx"}, cause="upstream_5xx")
    a4 = Story(tx, "A4", at(8)).start(at(8)).end("failed", "failed", at(8, 0, 10))
    a4.move("requeued", "pending", at(8, 1), "person").start(at(8, 1)).end("done", "done", at(8, 1, 10))
    a5 = Story(tx, "A5", at(10)).start(at(10))
    a5.end("lease_lost", "retrying", at(10, 0, 60)).start(at(10, 0, 70))
    a5.end("lease_lost", "retrying", at(10, 0, 130)).start(at(10, 0, 140)).end("worker_died", "failed", at(10, 0, 200))


def _reviews(tx: Connection) -> None:
    b1 = Story(tx, "B1", at(7, 9), "replies").start(at(7, 9)).ask(at(7, 10), proposed="approve").opened(at(7, 10.5))
    b1.decide("approved", "pending", at(7, 11), confidence=0.9).move("done", "done", at(7, 11, 10))
    b2 = Story(tx, "B2", at(7, 9), "replies").start(at(7, 9)).ask(at(7, 10), "low_confidence", proposed="approve")
    b2.opened(at(7, 10.25), "wang@example.org").opened(at(7, 12, -2))
    edits = {"text": {"from": "Hallo", "to": "Hello"}}
    b2.decide("approved", "pending", at(7, 12), confidence=0.6, edits=edits)
    b2.move("done", "done", at(7, 12, 10))
    b3 = Story(tx, "B3", at(7, 9), "replies").start(at(7, 9)).ask(at(7, 10), proposed="reject")
    b3.decide("rejected", "cancelled", at(7, 10.5))
    b3.move("decision_undone", "needs_review", at(7, 10.5, 5), "person")
    b3.decide("approved", "pending", at(7, 14)).move("done", "done", at(7, 14, 10))
    b4 = Story(tx, "B4", at(8, 9), "replies").start(at(8, 9)).ask(at(8, 10), "sample")
    b4.decide("rejected", "cancelled", at(8, 10, 600), "wang@example.org")
    b5 = Story(tx, "B5", at(6), "replies").start(at(6)).ask(at(6, 1), due=at(9, 1))
    b5.decide("review_expired", "cancelled", at(9, 1, 1), "board", "timer")
    b6 = Story(tx, "B6", at(13, 21), "replies", title="Answer to Mr. Berg", assignee="user:li@example.org")
    b6.start(at(13, 21)).ask(at(13, 22), due=at(13, 23)).note("review_overdue", at(13, 23, 5))
    Story(tx, "B7", at(11), "pays").start(at(11)).ask(at(11, 1), "unknown_outcome")
    b8 = Story(tx, "B8", at(11), "pays").start(at(11)).ask(at(11, 1), "unknown_outcome")
    b8.decide("confirmed_happened", "done", at(12, 10))


def _edges(tx: Connection) -> None:
    Story(tx, "C1", at(7)).move("cancelled", "cancelled", at(7, 1), "key").note("duplicate", at(7, 2), "key")
    Story(tx, "C2", at(13, 23)).start(at(14)).end("done", "done", at(14))
    Story(tx, "C3", at(6, 23)).start(at(6, 23, 3590)).end("done", "done", at(7))
    d1 = Story(tx, "D1", at(9, 6), priority=3, lane=3).note("aged", at(9, 6, 360), **{"from": "P3", "to": "P2"})
    d1.note("deadline_missed", at(9, 6, 400)).start(at(9, 6, 600)).end("done", "done", at(9, 6, 700))
