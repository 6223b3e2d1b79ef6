"""Work on files has slots of its own: it keeps no other work waiting, and none keeps it waiting."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from board.ports import Job, Outcome, Success
from tests.rig.valkey import ValkeyServer
from tests.rig.working import Gate, OpenWorking, Probe, WorkingBoard


class HeavyProbe(Probe):
    slots = "files"


class Held:
    """Two handlers that stay until they are let go; who has begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go = Gate()

    async def run(self, job: Job) -> Outcome:
        self.begun.append(job.task_id)
        await self.go.passed()
        return Success(result={})


@pytest.fixture(params=["ledger", "Redis"])
def more(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The settings of either queue."""
    if request.param == "ledger":
        return {}
    server: ValkeyServer = request.getfixturevalue("valkey_server")
    return {"redis_url": server.url}


def opened(working: OpenWorking, held: Held, **settings: Any) -> WorkingBoard:
    light, heavy = Probe(held.run), HeavyProbe(held.run)
    heavy.name = "heavy"
    board = working(light, heavy, concurrency=2, file_concurrency=1, reserved_p0_slots=0, **settings)
    board.type("light", "probe")
    board.type("heavy", "heavy")
    return board


def test_neither_keeps_the_other_waiting(working: OpenWorking, more: dict[str, Any]) -> None:
    held = Held()
    board = opened(working, held, **more)
    for number in range(30):
        board.submit(f"H-{number}", "heavy")
    board.until(lambda: held.begun == ["H-0"])
    for number in range(3):
        board.submit(f"L-{number}", "light")
    board.until(lambda: len(held.begun) == 3)
    assert sorted(held.begun) == ["H-0", "L-0", "L-1"], "one file at a time, two others beside it"
    held.go.open()
    for number in range(30):
        board.wait(f"H-{number}", "done")
    assert [it for it in held.begun if it.startswith("H")] == [f"H-{n}" for n in range(30)]


def test_a_rush_order_starts_beside_long_work_on_files(working: OpenWorking) -> None:
    held = Held()
    board = opened(working, held)
    board.submit("H-0", "heavy", priority="P3")
    board.submit("H-1", "heavy", priority="P3")
    board.until(lambda: held.begun == ["H-0"])
    board.submit("H-2", "heavy", priority="P0")
    board.until(lambda: held.begun == ["H-0", "H-2"])
    held.go.open()
    board.wait("H-1", "done")


def test_a_retry_and_a_requeue_stay_with_the_files(working: OpenWorking) -> None:
    held = Held()
    board = opened(working, held)
    board.submit("H-0", "heavy")
    assert board.task("H-0")["pool"] == "files"
    board.until(lambda: held.begun == ["H-0"])
    board.cancel("H-0")
    board.wait("H-0", "cancelled")
    with board.board.db.write() as tx:
        from board.tasks.requeue import requeue
        from tests.heart import OPERATOR

        requeue(tx, board.board.ledger, board.board.catalogue, board.task("H-0")["id"], OPERATOR)
    assert board.task("H-0")["pool"] == "files"
    held.go.open()
    board.wait("H-0", "done")


def test_what_waits_for_a_slot_for_files_says_so(working: OpenWorking) -> None:
    held = Held()
    board = opened(working, held)
    board.submit("H-0", "heavy")
    board.until(lambda: held.begun == ["H-0"])
    board.submit("H-1", "heavy")
    with board.board.db.read() as connection:
        document = board.board.task_document(connection, board.task("H-1"))
    assert "slot for files" in document["waiting_for"]["message"]
    held.go.open()


def test_a_stop_hands_back_what_works_on_files(working: OpenWorking) -> None:
    held = Held()
    board = opened(working, held)
    board.submit("H-0", "heavy")
    board.until(lambda: held.begun == ["H-0"])
    board.stop()
    task = board.task("H-0")
    assert (task["status"], task["retry_count"], task["crash_count"]) == ("pending", 0, 0)


def test_what_was_claimed_begins_though_the_claim_for_files_fails(
    working: OpenWorking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the database goes away between the two: else it would be held, and its lease renewed, for ever."""
    held = Held()
    light = Probe(held.run)
    board = working(light, start=False)
    board.type("light", "probe")
    consumer = board.board.make_consumer()
    claim = consumer._claimer.queue.claim
    failed: list[str] = []

    def fails(wanted: Any) -> Any:
        if wanted.scope.pool == "files" and held.begun == [] and board.task("L-0")["status"] == "running":
            failed.append(wanted.scope.pool)
            raise OperationalError("claim", {}, Exception("away"))
        return claim(wanted)

    monkeypatch.setattr(consumer._claimer.queue, "claim", fails)
    board.submit("L-0", "light")
    consumer.start()
    try:
        board.until(lambda: held.begun == ["L-0"])
        assert failed == ["files"]
        held.go.open()
        board.wait("L-0", "done")
    finally:
        consumer.stop()


def test_the_next_file_prepares_itself_while_work_is_soon_over(working_sqlite: OpenWorking) -> None:
    held = Held()
    held.go.open()
    board = opened(working_sqlite, held)
    for number in range(10):  # now the worker knows how long it takes
        board.submit(f"H-{number}", "heavy")
        board.wait(f"H-{number}", "done")
    held.go = Gate()
    for number in range(10, 15):
        board.submit(f"H-{number}", "heavy")
    board.until(lambda: held.begun[10:] == ["H-10", "H-11"])
    board.submit("R-1", "heavy", priority="P0")
    board.until(lambda: "R-1" in held.begun)
    assert held.begun[10:] == ["H-10", "H-11", "R-1"], "one more than the slots and the one of P0"
    held.go.open()
    for number in range(10, 15):
        board.wait(f"H-{number}", "done")


def test_what_takes_its_time_has_nobody_behind_it(working_sqlite: OpenWorking) -> None:
    held = Held()
    board = opened(working_sqlite, held)
    for number in range(3):
        board.submit(f"H-{number}", "heavy")
    board.until(lambda: held.begun == ["H-0"])
    board.submit("R-1", "heavy", priority="P0")
    board.until(lambda: "R-1" in held.begun)
    assert held.begun == ["H-0", "R-1"]
    held.go.open()
    for number in range(3):
        board.wait(f"H-{number}", "done")
