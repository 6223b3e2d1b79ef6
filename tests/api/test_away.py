"""A database that is away is said as such, to programs and to people, and never as a fault of the request."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from board import settings
from board.app import build_app
from board.db.migrate import upgrade
from board.rooms import open_board
from tests.rig.asgi import serve
from tests.rig.postgres import PostgresServer

KEY = "a-key-for-tests-with-all-scopes"


def test_503_with_retry_after_while_the_database_is_away(
    postgres_server: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = postgres_server.url()
    upgrade(url)
    loaded = settings.load(database_url=url, data_dir=tmp_path / "data", bootstrap_api_key=KEY)
    with serve(build_app(open_board(loaded))) as base, httpx2.Client(base_url=base, trust_env=False) as client:
        client.headers["Authorization"] = f"Bearer {KEY}"
        assert client.get("/api/v1/me").status_code == 200
        postgres_server.stop()
        answer = client.get("/api/v1/tasks")
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        assert int(answer.headers["retry-after"]) > 0
        page = client.get("/login", headers={"Accept": "text/html"})
        assert page.status_code == 503
        assert "database does not answer" in page.text
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 503
        postgres_server.start()
        assert client.get("/api/v1/tasks").status_code == 200
    assert "Traceback" not in caplog.text
