"""Two processes of one board, as two wired boards: one serves callers, the other works.

Whatever finds out by looking is slowed down to minutes, so that what comes in time was heard.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from board.access.rights import key_actor
from board.db.migrate import upgrade
from board.following import Following
from board.ports import Job, Outcome, Success
from board.queue import live
from board.signals.signal import Call, Changed, Channel, Text
from board.tasks.states import TERMINAL
from board.worker.handing_out import WorkWanted
from tests.heart import CALLER
from tests.rig.board import RunBoard
from tests.rig.postgres import Postgres
from tests.rig.receiver import Receiver
from tests.rig.working import Gate, Probe
from tests.signals.pair import SOON, Pair, heard_by, settled, until


async def write(job: Job) -> Outcome:
    await job.progress(50, "half")
    await job.text("Good morning")
    return Success(result={})


def test_work_begins_and_its_end_is_told(pair: Pair) -> None:
    pair.work(Probe(write))
    for number in range(5):
        assert asyncio.run(settled(pair.front, pair.submit(f"T-{number}"))) == "done"


def test_what_a_handler_says_is_heard_before_its_end(pair: Pair) -> None:
    pair.work(Probe(write))

    async def follow() -> list[str]:
        with pair.front.signals.callers.open() as caller:
            caller.follow(pair.submit())
            following = Following(pair.front, caller, TERMINAL, after=0, seconds=SOON)
            return [event.decode().split("\n")[0].removeprefix("event: ") async for event in following.events()]

    assert asyncio.run(follow()) == ["status", "status", "progress", "text", "status", "end"]


def test_a_running_task_is_cancelled_from_another_process(pair: Pair) -> None:
    begun, never = Gate(), Gate()

    async def wait(job: Job) -> Outcome:
        begun.open()
        await never.passed()
        raise AssertionError

    pair.work(Probe(wait))
    task = pair.submit()
    begun.wait()
    with pair.front.db.write() as tx:
        pair.front.ledger.cancel(tx, pair.front.ledger.lock(tx, task), CALLER, None)
    pair.front.signals.send(Call.CANCEL)
    assert asyncio.run(settled(pair.front, task)) == "cancelled"


def test_that_a_task_came_to_a_person_is_heard_where_pages_are_open(pair: Pair) -> None:
    worker = pair.work(Probe(write))
    worker.type("ask", "none")

    async def heard() -> bool:
        with pair.front.reviews_changed.listen() as changed:
            # Off the loop, as requests are.
            await asyncio.to_thread(pair.submit, "T-1", "ask")
            await asyncio.wait_for(changed.wait(), SOON)
        return changed.is_set()

    assert asyncio.run(heard())
    worker.wait("T-1", "needs_review", timeout=SOON)


def test_commands_are_heard_at_once(pair: Pair, run_board: RunBoard, tmp_path: Path) -> None:
    gates: list[Gate] = [Gate(), Gate()]

    async def hang(job: Job) -> Outcome:
        gates[0].open()
        await gates[1].passed()
        return Success(result={})

    worker = pair.work(Probe(hang))
    env = {"BOARD_DATABASE_URL": pair.url, "BOARD_REDIS_URL": pair.redis}
    (tmp_path / "task.json").write_text('{"type": "trial", "task_id": "T-1"}')

    def command(*arguments: str) -> None:
        done = run_board(*arguments, env=env)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""

    command("submit", "task.json")
    gates[0].wait(SOON)
    command("cancel", "T-1")
    worker.wait("T-1", "cancelled", timeout=SOON)
    gates[1].open()
    command("requeue", "T-1")
    worker.wait("T-1", "done", timeout=SOON)


def test_a_pause_and_its_end_are_followed(pair: Pair) -> None:
    def pause(paused: bool) -> None:
        with pair.front.db.write() as tx:
            live.change(tx, "key:test", lambda rules: rules.model_copy(update={"paused": paused}))
        pair.front.signals.send(Call.RULES)

    worker = pair.work(Probe(write))
    consumer = worker.board.consumer
    assert consumer is not None
    pause(True)
    until(lambda: consumer._claimer.rules is not None and consumer._claimer.rules.paused)
    task = pair.submit()
    pause(False)
    assert asyncio.run(settled(pair.front, task)) == "done"


def test_a_call_to_another_system_leaves_at_once(pair: Pair, receiver: Receiver) -> None:
    pair.work(Probe(write))
    task = pair.submit(run_after="2100-01-01T00:00:00Z", callback_url=f"{receiver.url}/told")
    with pair.front.db.write() as tx:
        pair.front.ledger.cancel(tx, pair.front.ledger.lock(tx, task), CALLER, None)
    [call] = receiver.wait_for(1, SOON)
    assert call.path == "/told"


def test_an_outside_worker_who_waits_is_told(pair: Pair) -> None:
    """He waits in one process that callers ask, and the task comes in by another one."""
    pair.work(Probe(write))
    other = pair.open({Channel.CALLERS})

    async def wait() -> None:
        with other.claims.arrivals.listen() as arrived:
            pair.submit(type="outside")
            await asyncio.wait_for(arrived.wait(), SOON)

    asyncio.run(wait())
    assert len(other.claims.take(key_actor("n8n", ["work"]), WorkWanted("w"))) == 1


def test_one_does_not_hear_oneself_twice_and_no_other_board(pair: Pair, postgres: Postgres, tmp_path: Path) -> None:
    """Two boards on one Redis, or on one PostgreSQL server, never meet."""
    mine, peer = heard_by(pair.front), heard_by(pair.open({Channel.CALLERS}))
    url = postgres.create()
    upgrade(url)
    stranger = Pair(url, pair.redis, tmp_path / "other")
    theirs = heard_by(stranger.front)
    stranger.front.signals.send(Changed(99))
    for number in range(3):
        pair.front.signals.send(Text(1, 1, number, "x"))
        pair.front.signals.send(Changed(number))
    until(lambda: {Changed(0), Changed(1), Changed(2)} <= set(peer))
    assert [it for it in mine if isinstance(it, Changed)] == [Changed(0), Changed(1), Changed(2)]
    assert Changed(99) not in mine + peer
    assert theirs == [Changed(99)]
    stranger.close()
    postgres.drop(url)


def test_much_at_once_arrives_whole(pair: Pair) -> None:
    """Ten thousand moves and a long text in Chinese: many messages, each within PostgreSQL's limit."""
    peer = heard_by(pair.open({Channel.CALLERS}))
    for number in range(10_000):
        pair.front.signals.send(Changed(10**12 + number))
        if number % 1000 == 0:
            pair.front.signals.send(Text(5, 1, number, "字" * 1000))
    until(lambda: len([it for it in peer if isinstance(it, Changed)]) == 10_000)
    texts = [it for it in peer if isinstance(it, Text)]
    assert "".join(it.text for it in texts) == "字" * 10_000
