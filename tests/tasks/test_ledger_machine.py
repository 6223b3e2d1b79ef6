"""Random moves by everybody, with stale leases and versions among them, against a model that knows only the rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test
from sqlalchemy import RowMapping, delete, select

from board.db.engine import Database
from board.tasks.history import By
from board.tasks.ledger import Lease, Ledger, Stale
from board.tasks.models import task_events, tasks
from board.tasks.states import READY, RULES, TERMINAL, IllegalMove, Move, Phase, Status, after
from tests.heart import CALLER, OPERATOR, SWEEP, WORKER, claim_lane, new_task

WORKERS_MOVES = [move for move in Move if Status.RUNNING in RULES[move].sources]
PEOPLES_MOVES = [move for move in Move if move not in (Move.CREATE, Move.CLAIM)]


@dataclass
class Known:
    """What the model knows of one task."""

    status: Status
    phase: Phase = Phase.WORK
    token: int = 0
    version: int = 1
    cancelling: bool = False
    trail: list[tuple[str | None, str]] = field(default_factory=lambda: [(None, "pending")])

    def moved(self, move: Move) -> None:
        before = self.status
        self.status, self.phase = after(move, self.status, self.phase)
        self.version += 1
        self.trail.append((before, self.status))


class Machine(RuleBasedStateMachine):
    db: Database
    ledger = Ledger()
    made = 0  # over all runs of one database: IDs are never used twice

    created = Bundle("created")
    leases = Bundle("leases")
    reads = Bundle("reads")

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[int, Known] = {}

    def teardown(self) -> None:
        with self.db.write() as tx:
            tx.execute(delete(tasks))

    def row(self, task: int) -> dict[str, Any]:
        with self.db.read() as connection:
            return dict(connection.execute(select(tasks).where(tasks.c.id == task)).mappings().one())

    @rule(target=created)
    def create(self) -> int:
        type(self).made += 1
        name = f"T-{type(self).made}"
        with self.db.write() as tx:
            task = self.ledger.create(tx, [new_task(name)], CALLER)[name]
            assert self.ledger.create(tx, [new_task(name, title="other")], CALLER) == {}, "an ID is made once"
        self.known[task] = Known(Status.PENDING)
        return task

    @rule(target=leases, limit=st.integers(1, 3))
    def claim(self, limit: int) -> Any:
        with self.db.write() as tx:
            taken = claim_lane(tx, self.ledger, lane=2, limit=limit, worker="w1", lease=60)
        for row in taken:
            known = self.known[row["id"]]
            assert known.status in READY
            assert row["lease_token"] == known.token + 1
            known.token += 1
            known.moved(Move.CLAIM)
        claimable = [task for task, known in self.known.items() if known.status in READY]
        assert len(taken) == limit or not claimable
        return multiple(*(Lease(row["id"], row["lease_token"]) for row in taken))

    @rule(target=leases, lease=leases)
    def lose_and_take_again(self, lease: Lease) -> Any:
        """The lease runs out, and the next worker takes the task: from now on the old lease is stale."""
        known = self.known[lease.task]
        if known.status is not Status.RUNNING or known.cancelling:
            return multiple()
        with self.db.write() as tx:
            self.ledger.move(tx, self.ledger.lock(tx, lease.task), Move.RESCUE, SWEEP)
        known.moved(Move.RESCUE)
        return self.claim(limit=100)

    @rule(target=reads, task=created)
    def read(self, task: int) -> dict[str, Any]:
        """A row as a person sees it; by the time of the decision it may be old."""
        return self.row(task)

    @rule(lease=leases, move=st.sampled_from(WORKERS_MOVES))
    def settle(self, lease: Lease, move: Move) -> None:
        known = self.known[lease.task]
        before = self.row(lease.task)
        # What is ready again must be claimable: an action is left wherever the task goes on to act.
        changes = {"has_action": True} if move is Move.PROCEED else {}
        if move is Move.STOP:
            changes = {"cancel_requested": False}
        with self.db.write() as tx:
            moved = self.ledger.settle(tx, lease, move, WORKER, changes=changes)
        holds = known.token == lease.token and known.status is Status.RUNNING and known.phase in RULES[move].phases
        if not holds or (known.cancelling and move is not Move.STOP):
            assert moved is None
            self.unchanged(before)
            return
        assert moved is not None
        known.cancelling = known.cancelling and move is not Move.STOP
        known.moved(move)

    @rule(row=reads, move=st.sampled_from(PEOPLES_MOVES))
    def decide(self, row: dict[str, Any], move: Move) -> None:
        known = self.known[row["id"]]
        before = self.row(row["id"])
        start = RULES[move]
        changes: dict[str, Any] = {"has_action": True} if start.to_phase is Phase.ACT else {}
        if start.to is Status.CANCELLED:
            changes["cancel_requested"] = False
        try:
            with self.db.write() as tx:
                self.ledger.move(tx, as_row(row), move, OPERATOR, changes=changes)
        except IllegalMove:
            assert row["status"] not in start.sources or row["phase"] not in start.phases
            self.unchanged(before)
        except Stale:
            assert row["version"] != known.version
            self.unchanged(before)
        else:
            assert row["version"] == known.version
            known.cancelling = known.cancelling and start.to is not Status.CANCELLED
            known.moved(move)

    @rule(task=created)
    def cancel(self, task: int) -> None:
        known = self.known[task]
        before = self.row(task)
        try:
            with self.db.write() as tx:
                moved = self.ledger.cancel(tx, self.ledger.lock(tx, task), OPERATOR, "not needed")
        except IllegalMove:
            assert known.status in TERMINAL
            self.unchanged(before)
            return
        if known.status is Status.RUNNING:
            assert moved is None
            known.cancelling = True
        else:
            known.moved(Move.CANCEL)

    @rule(lease=leases)
    def renew(self, lease: Lease) -> None:
        known = self.known[lease.task]
        with self.db.write() as tx:
            alive = self.ledger.renew(tx, "w1", [lease], 60)
        assert (lease.task in alive) == (known.status is Status.RUNNING and known.token == lease.token)
        if alive:
            assert alive[lease.task]["cancel_requested"] == known.cancelling

    @rule(row=reads, title=st.sampled_from(["", "a", "线索"]))
    def edit(self, row: dict[str, Any], title: str) -> None:
        known = self.known[row["id"]]
        before = self.row(row["id"])
        try:
            with self.db.write() as tx:
                self.ledger.edit(tx, as_row(row), OPERATOR, changes={"title": title}, data={}, details={"title": title})
        except Stale:
            assert row["version"] != known.version
            self.unchanged(before)
        else:
            known.version += 1

    def unchanged(self, before: dict[str, Any]) -> None:
        """A refused call may leave word in the history, and nothing else."""
        now = self.row(before["id"])
        assert {**now, "event_seq": 0} == {**before, "event_seq": 0}

    @invariant()
    def the_rows_are_as_the_model_says(self) -> None:
        with self.db.read() as connection:
            query = select(tasks).where(tasks.c.id.in_(self.known))
            rows = {row["id"]: row for row in connection.execute(query).mappings()}
            query = select(task_events).where(task_events.c.task.in_(self.known)).order_by(task_events.c.seq)
            events: dict[int, list[RowMapping]] = {task: [] for task in self.known}
            for event in connection.execute(query).mappings():
                events[event["task"]].append(event)
        for task, known in self.known.items():
            row = rows[task]
            assert (row["status"], row["phase"], row["version"]) == (known.status, known.phase, known.version)
            assert row["lease_token"] == known.token
            assert (row["lease_owner"] is not None) == (row["lease_until"] is not None)
            assert (row["lease_owner"] is not None) == (known.status is Status.RUNNING)
            assert (row["finished_at"] is not None) == (known.status in TERMINAL)
            assert [event["seq"] for event in events[task]] == list(range(1, row["event_seq"] + 1))
            moves = [(e["from_status"], e["to_status"]) for e in events[task] if e["to_status"] is not None]
            assert moves == known.trail, "one event per move, chained"
            assert all(one[1] == two[0] for one, two in pairwise(moves))
            assert all(one["at"] <= two["at"] for one, two in pairwise(events[task]))


def as_row(row: dict[str, Any]) -> RowMapping:
    return row  # type: ignore[return-value]


@pytest.mark.parametrize("steps", [40])
def test_no_sequence_of_calls_breaks_the_rules(database_url: str, steps: int) -> None:
    db = Database(database_url)
    machine = type("MachineHere", (Machine,), {"db": db, "made": 0, "TestCase": None})
    examples = 50 if db.is_sqlite else 25
    try:
        run_state_machine_as_test(  # type: ignore[no-untyped-call]
            machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        db.close()


def test_everybody_who_is_refused_is_told_in_plain_words() -> None:
    refused = IllegalMove(Move.RUN_NOW, Status.DONE, Phase.WORK)
    assert str(refused) == "A task that is done cannot run now."
    for move, words in ((Move.CANCEL, "be cancelled"), (Move.REQUEUE, "be requeued"), (Move.REJECT, "be rejected")):
        assert str(IllegalMove(move, Status.DONE, Phase.WORK)) == f"A task that is done cannot {words}."
    assert By("person", "li@example.org", "web").identity == "user:li@example.org"
