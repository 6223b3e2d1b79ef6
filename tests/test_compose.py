"""compose.yaml: valid by the specification, whole, without a secret; and its commands and health checks work."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
import yaml

from tests.rig.board import BoardProcess, api, board_command
from tests.rig.compose import ROOT, env_file, environment, filled, healthy, services
from tests.rig.need import missing
from tests.rig.ports import free_port
from tests.rig.postgres import PostgresServer, wheel_binaries
from tests.rig.reaper import Reaper
from tests.rig.valkey import _valkey

FILE = (ROOT / "compose.yaml").read_text("utf-8")
RAW: dict[str, Any] = yaml.safe_load(FILE)
LASTING = [name for name in RAW["services"] if name != "board-migrate"]


@pytest.fixture
def names(tmp_path: Path) -> dict[str, str]:
    return env_file(tmp_path)


def test_it_is_a_compose_file_by_the_specification(names: dict[str, str]) -> None:
    try:
        from compose_spec import PyCompose
    except ImportError:
        missing("compose-spec", "install the dev extra (make test)")
    whole = filled(RAW, names)
    assert set(PyCompose.from_json(json.dumps(whole)).service_names()) == set(RAW["services"])
    wrong = copy.deepcopy(whole)
    wrong["services"]["redis"]["restrat"] = "always"
    with pytest.raises(ValueError, match="restrat"):  # it does look
        PyCompose.from_json(json.dumps(wrong))


def test_all_that_was_asked_for_is_there() -> None:
    found = RAW["services"]
    assert set(found) == {"postgres", "redis", "board-migrate", "board", "board-worker", "n8n", "n8n-worker"}
    assert found["board-worker"]["deploy"]["replicas"] == found["n8n-worker"]["deploy"]["replicas"] == 2
    for name in LASTING:
        assert found[name]["restart"] == "unless-stopped", name
        assert found[name]["healthcheck"]["test"], name
    options = found["redis"]["command"]
    pairs = dict(zip(options[1::2], options[2::2], strict=True))
    assert (pairs["--appendonly"], pairs["--appendfsync"]) == ("yes", "everysec")
    assert pairs["--maxmemory-policy"] == "noeviction"
    for name in ("n8n", "n8n-worker"):
        own = found[name]["environment"]
        assert own["N8N_ENCRYPTION_KEY"] == RAW["x-n8n"]["environment"]["N8N_ENCRYPTION_KEY"]
        assert (own["EXECUTIONS_MODE"], own["N8N_DEFAULT_BINARY_DATA_MODE"]) == ("queue", "database")
        assert own["WEBHOOK_URL"]


def test_whoever_needs_another_waits_until_that_works() -> None:
    found = RAW["services"]
    for name, service in found.items():
        for needed, how in service.get("depends_on", {}).items():
            once = needed == "board-migrate"
            assert how["condition"] == ("service_completed_successfully" if once else "service_healthy"), name
    for name in ("board", "board-worker"):
        assert set(found[name]["depends_on"]) == {"board-migrate", "redis"}


def test_what_must_last_lies_in_named_volumes() -> None:
    named = set(RAW["volumes"])
    used = set()
    for service in RAW["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./"):
                assert (ROOT / source).is_file()
            else:
                used.add(source)
    assert used == named == {"postgres-data", "redis-data", "board-data", "n8n-data"}


def test_no_secret_stands_in_the_file(names: dict[str, str]) -> None:
    secret = re.compile("KEY|SECRET|PASSWORD|AUTH")
    for name, service in RAW["services"].items():
        for key, value in service.get("environment", {}).items():
            if secret.search(key):
                assert re.fullmatch(r"\$\{\w+:\?run make env\}", value), f"{name}: {key}"
    asked = set(re.findall(r"\$\{(\w+):\?", FILE))
    assert asked <= set(names)
    assert all(len(names[name]) >= 32 for name in asked)
    again = {line for line in names.values() if len(line) >= 32}
    assert len(again) == len(asked), "each is another one"
    with pytest.raises(AssertionError, match="is not in"):
        filled(RAW, {})


def test_the_secrets_are_made_once_and_for_their_owner_only(tmp_path: Path) -> None:
    first = env_file(tmp_path)
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    command = [sys.executable, str(ROOT / "deploy" / "env.py"), str(tmp_path / ".env")]
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "left as it is" not in again.stdout
    assert "there already" in again.stderr
    (tmp_path / "other").mkdir()
    assert env_file(tmp_path / "other")["REDIS_PASSWORD"] != first["REDIS_PASSWORD"]
    assert not any(name.startswith("BOARD_") for name in first), "a board beside the containers would read it"


def test_the_image_gets_all_that_it_is_installed_from() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = {line[1:] for line in lines if line.startswith("!")}
    assert all((ROOT / path).exists() for path in let_in)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["packages"], *wheel["force-include"], project["project"]["readme"], "constraints.txt"}
    assert {path.split("/")[0] for path in needed} <= {path.split("/")[0] for path in let_in}
    docker = (ROOT / "Dockerfile").read_text()
    for path in re.findall(r"/src/([\w./-]+)", docker):
        assert path in let_in
    [extras] = re.findall(r"/src\[([\w,]+)\]", docker)
    assert set(extras.split(",")) <= set(project["project"]["optional-dependencies"])


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_its_commands_work_together(
    names: dict[str, str], tmp_path: Path, shared_folder: Path, reaper: Reaper, opened: ExitStack
) -> None:
    """Every command and health check of PostgreSQL, Redis and the board, as processes of this machine."""
    found = services(names)
    binaries = wheel_binaries(shared_folder)
    postgres = PostgresServer(shared_folder / "compose-postgres", reaper, binaries)
    opened.callback(postgres.remove)
    postgres.start()
    ports = {name: free_port() for name in ("redis", "board", "first", "second")}
    moves = {
        "@postgres:5432": f"@127.0.0.1:{postgres.port}",
        "@redis:6379": f"@127.0.0.1:{ports['redis']}",
        "/opt/board/health.py": str(ROOT / "deploy" / "health.py"),
    }
    programs = binaries, Path(sys.executable).parent  # pg_isready, python

    # The database and its users.
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("CREATE ROLE postgres SUPERUSER LOGIN PASSWORD 'p'")
    with psycopg.connect(
        host="127.0.0.1", port=postgres.port, user="postgres", password="p", dbname="postgres", autocommit=True
    ) as connection:
        connection.execute("ALTER ROLE board RENAME TO rig")  # the name belongs to the board of this file
    own = {"PGHOST": "127.0.0.1", "PGPORT": str(postgres.port), "PGPASSWORD": "p"}
    env = environment(found["postgres"], {}) | own | {"PATH": f"{binaries}:{os.environ['PATH']}"}
    subprocess.run(["sh", str(ROOT / "deploy" / "databases.sh")], env=env, check=True, capture_output=True)
    test = {"test": [*found["postgres"]["healthcheck"]["test"], f"--port={postgres.port}"]}
    assert healthy({"healthcheck": test}, moves, *programs).returncode == 0
    n8n = f"postgresql://n8n:{names['N8N_DB_PASSWORD']}@127.0.0.1:{postgres.port}"
    with psycopg.connect(f"{n8n}/n8n") as connection:
        connection.execute("CREATE TABLE own (id integer)")
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        psycopg.connect(f"{n8n}/board")

    # Redis, by its very options.
    options = [*found["redis"]["command"][1:], "--port", str(ports["redis"]), "--dir", str(tmp_path)]
    server = subprocess.Popen([_valkey(), *options, "--bind", "127.0.0.1"], stdout=subprocess.DEVNULL)
    reaper.guard(server.pid)
    opened.callback(server.wait, 20)
    opened.callback(server.kill)
    with redis.Redis(port=ports["redis"], password=names["REDIS_PASSWORD"]) as client:
        _until(client.ping)
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("appendfsync") == {"appendfsync": "everysec"}
    with redis.Redis(port=ports["redis"]) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()

    # The board: schema, API, two workers.
    data = {"BOARD_DATA_DIR": str(tmp_path / "data")}
    commands = {"board-migrate": found["board-migrate"]["command"]}
    subprocess.run(
        [*board_command(), *commands["board-migrate"]],
        env=environment(found["board-migrate"], moves) | data,
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    running = {}
    for name, service, inside in (
        ("board", "board", "8000"),
        ("first", "board-worker", "8001"),
        ("second", "board-worker", "8001"),
    ):
        command = [text.replace(inside, str(ports[name])) for text in found[service]["command"]]
        log = tmp_path / f"{name}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*board_command(), *command],
                env=environment(found[service], moves) | data,
                cwd=tmp_path,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        running[name] = BoardProcess(process, f"http://127.0.0.1:{ports[name]}", log, reaper, service)
        opened.callback(running[name].stop)
        check = moves | {inside: str(ports[name])}
        _until(lambda service=service, check=check: healthy(found[service], check, *programs).returncode == 0)
    client_ = api(running["board"].url, names["TASKBOARD_API_KEY"])
    type_ = {"types": [{"name": "trial", "handler": {"use": "echo"}, "require_id": False}]}
    client_.post("/types", json=type_).raise_for_status()
    done = client_.post("/tasks?wait=30", json={"type": "trial", "task_id": "T-1"}).json()
    assert done["status"] == "done"
    workers = client_.get("/workers").json()["data"]
    assert [row["status"] for row in workers] == ["alive", "alive"]

    # And who is not there is not healthy.
    unwell = healthy(found["board-worker"], moves | {"8001": str(free_port())}, *programs)
    assert (unwell.returncode, "no answer" in unwell.stderr) == (1, True)


def _until(holds: Any, timeout: float = 60.0) -> None:
    end = time.monotonic() + timeout
    while True:
        try:
            if holds():
                return
        except redis.RedisError:
            pass
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.1)
