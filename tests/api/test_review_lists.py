"""Lists of reviews: what the database is asked does not grow with the page."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, event
from starlette.testclient import TestClient

from board.app import build_app
from tests.rig.board import API_KEY
from tests.rig.working import OpenWorking


@contextmanager
def counted() -> Iterator[list[str]]:
    """What is asked meanwhile, by whatever thread of this process."""
    asked: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        asked.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def test_a_long_page_asks_no_more_often_than_a_short_one(working_sqlite: OpenWorking) -> None:
    board = working_sqlite(bootstrap_api_key=API_KEY)
    board.type("letter", "echo", review={"when": "always"})
    for number in range(5):
        board.submit(f"T-{number}", "letter")
        board.wait(f"T-{number}", "needs_review")
    board.stop()  # so that nobody else asks
    client = TestClient(build_app(board.board), headers={"Authorization": f"Bearer {API_KEY}"})

    def asked(limit: int) -> int:
        with counted() as statements:
            assert len(client.get(f"/api/v1/reviews?limit={limit}").json()["data"]) == limit
        return len(statements)

    asked(5)  # what a process reads once is read now
    assert asked(5) == asked(1) <= 6
