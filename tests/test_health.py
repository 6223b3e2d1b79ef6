"""What /readyz says of Redis: the truth, in time, and that work goes on."""

from __future__ import annotations

import time

import httpx2

from board.app import build_app
from board.health import ANSWER_SECONDS, is_ready, readiness
from board.redis_door import connect
from tests.rig.asgi import serve
from tests.rig.valkey import ValkeyServer
from tests.rig.working import OpenWorking


def test_without_redis_nothing_is_said_of_it(working_sqlite: OpenWorking) -> None:
    assert "redis" not in readiness(working_sqlite(start=False).board)


def test_what_is_wrong_with_redis_is_said_and_the_board_stays_ready(
    working_sqlite: OpenWorking, valkey_server: ValkeyServer
) -> None:
    board = working_sqlite(start=False, redis_url=valkey_server.url).board

    def said() -> str:
        began = time.monotonic()
        checks = readiness(board)
        assert time.monotonic() - began < ANSWER_SECONDS + 1
        assert is_ready(checks)
        return checks["redis"]

    assert said() == "ok"
    with connect(valkey_server.url) as client:
        client.config_set("maxmemory-policy", "volatile-lru")
    assert "maxmemory-policy is volatile-lru" in said()
    valkey_server.freeze()
    assert said() == "Redis is away: It did not answer within 1 s. Work goes on from the database."
    valkey_server.stop()
    assert "Redis is away" in said()


def test_over_http(working_sqlite: OpenWorking, valkey_server: ValkeyServer) -> None:
    board = working_sqlite(start=False, redis_url=valkey_server.url).board
    valkey_server.stop()
    with serve(build_app(board)) as url, httpx2.Client(trust_env=False) as client:
        answer = client.get(f"{url}/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")
    assert "cannot be reached" in answer.json()["checks"]["redis"]


def test_another_storage_than_the_boards_is_told_and_the_rest_goes_on(working_sqlite: OpenWorking) -> None:
    board = working_sqlite(start=False).board
    assert readiness(board)["storage"] == "ok"
    board.files.identity.check()
    assert readiness(board)["storage"] == "ok"
    folder = board.settings.data_dir / "files"
    folder.rename(folder.with_name("moved"))
    checks = readiness(board)
    assert "BOARD_STORAGE_URL" in checks["storage"]
    assert is_ready(checks)
