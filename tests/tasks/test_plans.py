"""On 50,000 rows the hot queries go through their partial indexes and sort nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import case, event, insert, literal, select, text, update

from board.db.clock import read_now
from board.db.engine import Database
from board.db.types import UtcTime
from board.effects import incoming, listing, scribe, waits
from board.effects.deliver import Outbox
from board.effects.listing import Filter
from board.effects.models import callback_rights, operation_waits, operations, untold
from board.effects.scribe import Scribe
from board.queue import ledger_queue
from board.queue.redis_lines import Place
from board.queue.wanted import Scope
from board.review import overdue, quality, reminders
from board.review import read as inbox
from board.review.filters import Wanted
from board.review.models import reviews
from board.tasks.ledger import Ledger
from board.tasks.models import task_data, tasks
from board.tasks.states import Pool, Status
from board.upkeep import archive, sweep
from board.upkeep.rebuild import waiting
from board.worker.glance import Glance
from tests.heart import claim_lane, new_task

ROWS = 50_000
STATUSES = (
    ["done"] * 70 + ["failed"] * 5 + ["cancelled"] * 5 + ["needs_review"] * 5 + ["pending"] * 12 + ["running"] * 3
)

NOBODY = Scribe(None, lambda _connection, rows: [{} for _ in rows])  # type: ignore[arg-type] # what it writes is nobody's concern here
NONE = {"answer": None, "answered_at": None}
LOST_BELOW = 1000  # of the first thousand the leases have run out
LOST = 30


def _runs(number: int) -> bool:
    return STATUSES[number % 100] == "running"


@pytest.fixture
def full(db: Database) -> Database:
    with db.write() as tx:
        base = {key: value for key, value in new_task("").items() if key != "data"}
        shared = base | {
            "phase": "work",
            "has_action": False,
            "unmet_needs": 0,
            "lease_token": 0,
            "cancel_requested": False,
            "retry_count": 0,
            "crash_count": 0,
            "suspect": False,
            "round": 1,
            "version": 1,
            "event_seq": 1,
        }
        now, later = read_now(tx), timedelta(hours=1)
        times = {"lane_since": now, "ready_at": now, "created_at": now, "updated_at": now}
        tx.execute(
            insert(tasks),
            [
                shared
                | times
                | {
                    "task_id": f"T-{n}",
                    "status": STATUSES[n % 100],
                    "lane": n % 4,
                    "lease_until": now + (later if n >= LOST_BELOW else -later) if _runs(n) else None,
                    "lease_owner": "w0" if _runs(n) else None,
                }
                for n in range(ROWS)
            ],
        )
        sent = {
            "kind": "webhook.callback",
            "target": "x",
            "request_hash": "",
            "tries": 0,
            "lease_token": 0,
            "created_at": now,
        }
        tx.execute(
            insert(operations),
            [
                sent
                | {
                    "key": f"k-{n}",
                    "task": None if n % 2 else n + 1,  # the others outlived their tasks
                    "status": "confirmed" if n % 50 else "reserved",
                    "next_try_at": None if n % 50 else now,
                    "url": "https://example.org",
                    "receiver": f"https://{'down' if n % 1000 else 'up'}.example.org/",
                    "body": "{}",
                }
                for n in range(ROWS // 2)
            ],
        )
    with db.write() as tx:
        tx.execute(text("ANALYZE"))
    return db


@contextmanager
def plans(db: Database, about: str = "") -> Iterator[list[str]]:
    """The plans of all SELECT statements with the text `about` that are sent inside the block, as one text each."""
    sent: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        if (
            statement.lstrip().startswith(("SELECT", "WITH"))
            and about in statement
            and not statement.startswith("SELECT board_now() AS")
            and "UPDATE tasks" not in statement
        ):
            sent.append((statement, parameters))

    event.listen(db._writer, "before_cursor_execute", note)
    if db._reader is not db._writer:
        event.listen(db._reader, "before_cursor_execute", note)
    found: list[str] = []
    yield found
    event.remove(db._writer, "before_cursor_execute", note)
    if db._reader is not db._writer:
        event.remove(db._reader, "before_cursor_execute", note)
    with db.read() as connection:
        for statement, parameters in sent:
            prefix = "EXPLAIN QUERY PLAN " if db.is_sqlite else "EXPLAIN "
            rows = connection.exec_driver_sql(prefix + statement, parameters).all()
            found.append("\n".join(str(row[-1]) for row in rows))


def test_hot_queries_on_many_rows(full: Database) -> None:
    ledger = Ledger()
    with plans(full) as claiming, full.write() as tx:
        for lane in range(4):
            assert len(claim_lane(tx, ledger, lane=lane, limit=16, worker="w1", lease=60)) == 16
        tx.rollback()
    with plans(full) as by_ids, full.write() as tx:
        ids = [number for number in range(1, 200) if STATUSES[(number - 1) % 100] == "pending"]
        assert len(ledger.candidates_of(tx, ids, pool=Pool.BOARD)) == len(ids)
        tx.rollback()
    with plans(full) as filling, full.read() as connection:
        batch = waiting(Pool.BOARD, 2, None).limit(100)
        first = [Place._make(row) for row in connection.execute(batch)]
        second = connection.execute(waiting(Pool.BOARD, 2, first[-1]).limit(100)).scalars().all()
        assert len({place.task for place in first} | set(second)) == 200
    with plans(full) as looking, full.read() as connection:
        assert ledger_queue.look(connection, Scope(), 8) == (dict.fromkeys(range(4), 8), False, False)
    glance = Glance(full, list(Pool), None, None, {"grace": sweep.grace_over(), "calls": waits.any_at_all()})
    with plans(full) as glancing:
        assert glance.look().work
    with plans(full, "lease_until <") as sweeping:
        assert sweep.rescue_leases(full, ledger, Types()) == LOST  # type: ignore[arg-type]
    with plans(full) as archiving, full.read() as connection:
        window = archive._window("trial", Status.DONE, ROWS // 4)
        ids = [row.id for row in connection.execute(window)]
        assert len(ids) == archive.BATCH
        assert archive._held(connection, ids)
    for found, index in [
        (claiming, "ix_tasks_ready"),
        (by_ids, "PRIMARY KEY" if full.is_sqlite else "tasks_pkey"),
        (filling, "ix_tasks_ready"),
        (looking, "ix_tasks_ready"),
        (looking, "ix_tasks_suspects"),
        (glancing, "ix_tasks_ready"),
        (glancing, "ix_tasks_held"),
        (glancing, "ix_tasks_suspects"),
        (glancing, "ix_tasks_grace"),
        (sweeping, "ix_tasks_leases"),
        (archiving[:1], "ix_tasks_type_status" if full.is_sqlite else "Index Scan using"),
        (archiving[2:3], "ix_operations_task"),
    ]:
        assert found, index
        for plan in found:
            assert index in plan, plan
            assert not re.search(r"(Seq Scan on|SCAN) (tasks|operations)\b", plan, re.MULTILINE), plan
            # Rows of the very same moment may be put in order by their id; never all of them.
            assert not re.search(r"(?<!Incremental )Sort  |TEMP B-TREE FOR ORDER BY", plan), plan


def test_the_outbox_finds_what_is_due_without_reading_what_waits_for_others(full: Database) -> None:
    """Word for a receiver that is down lies before word for one that is up."""
    with plans(full) as delivering:
        taken = Outbox(full, None, NOBODY, "secret").take(lambda receiver: 3 if "up" in receiver else 0).rows
    assert [due.receiver for due in taken] == ["https://up.example.org/"] * 3
    receivers, rows = delivering[:2]
    for plan in (receivers, rows):
        assert "ix_operations_outbox" in plan, plan
        assert not re.search(r"Seq Scan on operations|SCAN (operations|o)$", plan, re.MULTILINE), plan
    assert not re.search(r"(?<!Incremental )Sort  |TEMP B-TREE FOR ORDER BY", rows), rows


def test_what_is_to_be_told_is_found_from_its_notes(full: Database) -> None:
    with full.write() as tx:
        tx.execute(insert(untold), [{"task": n * 100 + 1, "seq": 1} for n in range(300)])
        tx.execute(text("ANALYZE untold"))
    with plans(full, "untold JOIN tasks") as noted, full.write() as tx:
        assert len(tx.execute(scribe._noted(tx.dialect.name)).all()) == scribe.BATCH
    [plan] = noted
    assert not re.search(r"(Seq Scan on|SCAN) tasks\b|Hash", plan, re.MULTILINE), plan
    assert ("tasks_pkey" if not full.is_sqlite else "SEARCH tasks USING INTEGER PRIMARY KEY") in plan, plan


def test_what_waits_for_a_persons_word_is_counted_on_every_page(full: Database) -> None:
    """And listed, and the few of one state found, without a look at the many that are confirmed."""
    with full.write() as tx:
        now = read_now(tx)
        shared = {
            "target": "x",
            "request_hash": "",
            "tries": 1,
            "lease_token": 0,
            "created_at": now - timedelta(days=1),
        }
        own = shared | {"kind": "webhook.action", "status": "unknown", "owner": None}
        outside = shared | {"kind": "outside", "status": "reserved", "owner": "key:n8n"}
        tx.execute(insert(operations), [own | {"key": f"u-{n}", "harmless": n % 2 == 0} for n in range(20)])
        tx.execute(insert(operations), [outside | {"key": f"o-{n}"} for n in range(10)])
        tx.execute(text("ANALYZE"))
    with plans(full) as counting, full.read() as connection:
        assert listing.count_in_question(connection) == 20
    with plans(full) as asking, full.read() as connection:
        assert len(listing.found(connection, Filter(in_question=True)).rows) == 20
    with plans(full) as by_status, full.read() as connection:
        assert len(listing.found(connection, Filter(statuses=("unknown",))).rows) == 20
    with plans(full) as by_owner, full.read() as connection:
        assert len(listing.found(connection, Filter(owner="key:n8n")).rows) == 10
    for found, indexes in [
        (counting, ("ix_operations_unknown", "ix_operations_announced")),
        (asking, ("ix_operations_unknown", "ix_operations_announced")),
        (by_status, ("ix_operations_u",)),
        (by_owner, ("ix_operations_owner",)),
    ]:
        [plan] = found
        assert all(index in plan for index in indexes), plan
        assert not re.search(r"(Seq Scan on|SCAN) operations(?! USING)", plan), plan


def test_callbacks_are_found_by_their_token_and_their_task(full: Database) -> None:
    with full.write() as tx:
        now = read_now(tx)
        right = {"attempt": 1, "created_at": now}
        answer = {"answer": {"status": "succeeded", "result": 1}, "answered_at": now}
        rows = [right | {"token_hash": f"h-{n}", "task": n} for n in range(1, ROWS // 2)]
        tx.execute(insert(callback_rights), [row | (answer if row["task"] % 100 == 7 else NONE) for row in rows])
        tx.execute(text("ANALYZE"))
    with plans(full) as looking, full.read() as connection:
        assert len(incoming.answers(connection, range(1, 501))) == 5
    with plans(full) as finding, full.read() as connection, pytest.raises(incoming.NoSuchRight):
        incoming.find(connection, "no such token")
    for plan in (*looking, *finding):
        assert not re.search(r"(Seq Scan on|SCAN) callback_rights\b", plan), plan


def test_who_waits_for_a_call_is_found_without_a_look_at_the_others(full: Database) -> None:
    with full.write() as tx:
        tx.execute(update(tasks).where(tasks.c.id <= 50).values(status="retrying"))
        # Calls of the rows above: every fiftieth is still open, the others are confirmed.
        waits_for = [{"task": n, "attempt": 0, "operation": n if n <= 3 else 50 * n + 1} for n in range(1, 51)]
        waits_for[0]["operation"] = 2
        tx.execute(insert(operation_waits), waits_for)
        tx.execute(text("ANALYZE"))
    with plans(full) as waking, full.read() as connection:
        woken = connection.execute(waits.over()).mappings().all()
    assert sorted(row["id"] for row in woken) == [1, 2, 3]
    for plan in waking:
        assert not re.search(r"(Seq Scan on|SCAN) (tasks|operations)\b", plan), plan


class Types:
    """A catalogue that needs no table."""

    def version(self, *_: Any) -> Any:
        return SimpleNamespace(spec=SimpleNamespace(max_crashes=3))


def test_figures_on_decisions_are_read_by_when_they_were_made(full: Database) -> None:
    with full.write() as tx:
        now = read_now(tx)
        shared = {"reason": "policy", "content_hash": "", "opened_at": now, "status": "decided", "verdict": "approve"}
        shared |= {"risk": "low", "round": 1, "version": 1, "decider_kind": "person"}
        asked = [n + 1 for n in range(ROWS) if STATUSES[n % 100] == "done"][:20_000]
        tx.execute(insert(reviews), [shared | {"task": n, "decided_at": now - timedelta(minutes=n)} for n in asked])
        tx.execute(text("ANALYZE"))
    with plans(full, "disagreed") as found, full.read() as connection:
        made = quality.by_type(connection, now - timedelta(hours=2), now)
        assert made["trial"].decisions > 50
    assert "ix_reviews_decided" in found[0], found[0]


def test_the_inbox_is_read_in_the_order_of_its_index(full: Database) -> None:
    with full.write() as tx:
        now = read_now(tx)
        shared = {"reason": "policy", "content_hash": "", "opened_at": now, "status": "open"}
        asked = [n + 1 for n in range(ROWS) if STATUSES[n % 100] == "needs_review"]
        tx.execute(insert(reviews), [shared | {"task": n, "risk": "low", "round": 1, "version": 1} for n in asked])
        tx.execute(insert(task_data), [{"task": n, "payload": {}, "payload_hash": ""} for n in asked])
        tx.execute(text("ANALYZE"))
    with plans(full, "risk_order") as found, full.read() as connection:
        first = inbox.inbox(connection, limit=30)
        second = inbox.inbox(connection, limit=30, cursor=first.next_cursor)
        assert [len(page.rows) for page in (first, second)] == [30, 30]
    for plan in found:
        assert "ix_reviews_inbox" in plan, plan
        assert not re.search(r"(Seq Scan on|SCAN) tasks\w*(?! USING)\b", plan), plan
        assert re.search(r"Limit.*\n *->  Index Scan using ix_reviews_inbox|SCAN reviews USING INDEX ix_", plan), plan


def test_the_clock_finds_few_among_a_hundred_thousand_open_reviews(full: Database) -> None:
    """Timers look every second: at what is overdue, and at what is to be reminded of."""
    with full.write() as tx:
        now = read_now(tx)
        # An open review of each task, one in a thousand of them overdue, and another of it that is over.
        early, late = (literal(now + timedelta(minutes=m), UtcTime()) for m in (-1, 300))
        due = case((tasks.c.id % 1000 == 0, early), else_=late)
        remind = case((tasks.c.id % 2 == 0, late))
        names = ["task", "status", "due_at", "remind_at", "reason", "content_hash", "opened_at", "round", "version"]
        for status in ("open", "closed"):
            said = [literal("policy"), literal(""), literal(now, UtcTime()), literal(1), literal(1)]
            query = select(tasks.c.id, literal(status), due, remind, *said)
            tx.execute(insert(reviews).from_select(names, query))
        tx.execute(text("ANALYZE"))
    with plans(full, "reviews") as found, full.read() as connection:
        assert len(connection.execute(overdue._due().limit(overdue.AT_ONCE)).all()) == ROWS // 1000
        assert connection.execute(select(overdue.any_due())).scalar()
        assert len(connection.execute(reminders._due().limit(reminders.AT_ONCE)).all()) == 0
        assert not connection.execute(select(reminders.any_due())).scalar()
    assert len(found) == 4
    for plan, index in zip(found, ["ix_reviews_open"] * 2 + ["ix_reviews_remind"] * 2, strict=True):
        assert re.search(rf"(Scan using|USING (COVERING )?INDEX) {index}\b", plan), plan
        assert not re.search(r"Sort|TEMP B-TREE|Seq Scan|Bitmap", plan), plan
    with plans(full, "risk_order") as found, full.read() as connection:
        inbox.inbox(connection, wanted=Wanted(due="overdue"), limit=200)
        inbox.inbox(connection, wanted=Wanted(due=now + timedelta(hours=1)), limit=200)
    for plan in found:  # no page reads those that are due later, though it does not get full
        assert re.search(r"Index Cond: .*\bdue_|INDEX ix_reviews_\w+ \(due_\w+<", plan), plan
