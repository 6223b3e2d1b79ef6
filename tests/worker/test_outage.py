"""A database that is away for a while ends no worker."""

from pathlib import Path

from board import settings
from board.db.migrate import upgrade
from board.ports import Job, Outcome, Success
from board.rooms import open_board
from tests.rig.postgres import PostgresServer
from tests.rig.working import Gate, Probe, WorkingBoard


def test_work_goes_on_when_the_database_is_back(postgres_server: PostgresServer, tmp_path: Path) -> None:
    began, gate = Gate(), Gate()

    async def work(job: Job) -> Outcome:
        if job.task_id == "T-1" and job.attempt == 1:
            began.open()
            await gate.passed()
        return Success(result=job.attempt)

    url = postgres_server.url()
    upgrade(url)
    loaded = settings.load(database_url=url, data_dir=tmp_path / "data", lease="1s", concurrency=2)
    board = WorkingBoard(open_board(loaded, handlers=lambda: {"probe": Probe(work)}))  # type: ignore[dict-item]
    try:
        board.start()
        board.type()
        board.submit("T-1")
        began.wait()
        postgres_server.stop()
        gate.open()  # its result cannot be written now
        postgres_server.start()
        board.submit("T-2")
        assert board.wait("T-2", "done")["crash_count"] == 0
        task = board.wait("T-1", "done")
        assert (task["crash_count"], board.data("T-1")["result"]) in ((1, 2), (0, 1))
    finally:
        board.close()
