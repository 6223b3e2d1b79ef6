"""What compose.yaml starts of n8n, as processes: main and two workers in queue mode, with its settings and checks."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from tests.n8n import nodes
from tests.n8n.server import OLD, Flows, N8n, wait_until
from tests.rig.compose import env_file, healthy, services
from tests.rig.ports import free_port
from tests.rig.postgres import Postgres, database_of
from tests.rig.reaper import Reaper, new_folder

START = 120.0  # seconds; as in tests/n8n/server.py


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.skipif(OLD, reason="compose.yaml names n8n 2")
def test_n8n_runs_in_queue_mode_with_two_workers(
    tmp_path: Path, postgres: Postgres, redis_url: str, reaper: Reaper, opened: ExitStack
) -> None:
    found = services(env_file(tmp_path))
    database = postgres.create()
    opened.callback(postgres.drop, database)
    with psycopg.connect(database) as connection:
        info = connection.info
        where = {"DB_POSTGRESDB_HOST": info.host, "DB_POSTGRESDB_PORT": str(info.port)}
        where |= {"DB_POSTGRESDB_USER": info.user, "DB_POSTGRESDB_PASSWORD": info.password}
    where |= {"DB_POSTGRESDB_DATABASE": database_of(database)}
    queue = redis.connection.parse_url(redis_url)
    where |= {"QUEUE_BULL_REDIS_HOST": queue.get("host", "127.0.0.1"), "QUEUE_BULL_REDIS_PORT": str(queue["port"])}
    where |= {"QUEUE_BULL_REDIS_PASSWORD": queue.get("password", ""), "QUEUE_BULL_REDIS_DB": "0"}

    folder = new_folder()
    reaper.folder(folder)
    own = {name: value for name, value in found["n8n"]["environment"].items() if name != "WEBHOOK_URL"}
    main = N8n(folder, reaper, env=own | where)
    assert found["n8n"]["command"] == ["start"]  # as N8n starts it
    main.start()
    opened.callback(main.stop)
    programs = Path(main.environment["PATH"].split(":")[0])
    port = main.url.rpartition(":")[2]
    assert healthy(found["n8n"], {"5678": port}, programs).returncode == 0
    assert healthy(found["n8n"], {"5678": str(free_port())}, programs).returncode == 1

    logs = [started_worker(main, found["n8n-worker"], where, number, programs, reaper, opened) for number in (1, 2)]
    flows = Flows(main)
    opened.callback(flows.close)
    flow = flows.make(nodes.webhook("queued"), nodes.items({"n": 1}))
    for _ in range(6):
        flow.post("queued", json={})
    ended = flow.ended(6)
    assert {one.status for one in ended} == {"success"}
    assert sum(log.read_text().count("finished execution") for log in logs) >= 6, "the workers have done it"


def started_worker(
    main: N8n,
    service: dict[str, Any],
    where: dict[str, str],
    number: int,
    programs: Path,
    reaper: Reaper,
    opened: ExitStack,
) -> Path:
    """A worker by its command; its log. Returns when its health check says that it is well."""
    port = str(free_port())
    own = {"QUEUE_HEALTH_CHECK_PORT": port, "N8N_WORKER_SERVER_ADDRESS": "127.0.0.1"}
    own |= {"N8N_RUNNERS_BROKER_PORT": str(free_port()), "N8N_LOG_LEVEL": "info"}
    env = main.environment | service["environment"] | where | own
    log = main.folder / f"worker-{number}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["node", str(main.program / "node_modules/n8n/bin/n8n"), *service["command"]],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    reaper.guard(process.pid)
    opened.callback(reaper.release, process.pid)
    opened.callback(process.wait, 60)
    opened.callback(process.terminate)

    def well() -> bool:
        assert process.poll() is None, log.read_text()[-3000:]
        return healthy(service, {"5678": port}, programs).returncode == 0

    wait_until(well, "the worker is well", START)
    return log
