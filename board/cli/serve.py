"""`board up`, `board api`, `board worker`: the processes."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from board import logs, serve
from board import settings as all_settings
from board.access import links
from board.cli.output import AsJson, remark
from board.db import migrate, place
from board.health_port import HealthPort
from board.rooms import Board, open_board
from board.settings import Settings
from board.worker import presence
from board.worker.consumer import Consumer

Host = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")]


def up(
    host: Host = "127.0.0.1",
    port: Port = 8000,
    demo: Annotated[bool, typer.Option("--demo", help="Load sample types and tasks and a stand-in for Dify.")] = False,
    as_json: AsJson = False,
) -> None:
    """Everything in one process: migrates the database, serves the API and the pages, and does the work."""
    from board import demo as demos  # here and in `api`: a worker alone needs no web server
    from board.app import build_app
    from board.serve_web import serve_api

    bound = serve.listen(host, port)
    settings = _settings(host, bound.getsockname()[1])
    migrate.upgrade(settings.database_url)
    board = open_board(settings)
    _enter(board.make_consumer())
    found = demos.load() if demo else []
    board.demo = bool(found)
    app = build_app(board)
    demos.mount(app, found)

    def ready() -> None:
        if found:
            demos.fill(board, found, f"http://127.0.0.1:{bound.getsockname()[1]}")
        _greet(board, as_json, worker=True)

    serve_api(board, app, bound, ready)


def api(host: Host = "127.0.0.1", port: Port = 8000, as_json: AsJson = False) -> None:
    """The API and the pages alone; workers run beside it. Never migrates."""
    from board.app import build_app
    from board.serve_web import serve_api

    bound = serve.listen(host, port)
    board = open_board(_settings(host, bound.getsockname()[1]))
    if board.db.is_sqlite:
        with board.db.read() as connection:
            presence.refuse_second_host(connection)
    serve_api(board, build_app(board), bound, lambda: _greet(board, as_json, worker=False))


def worker(
    concurrency: Annotated[int | None, typer.Option(min=1, max=1000, help="Tasks at the same time.")] = None,
    types: Annotated[str, typer.Option(help="Only these types, separated by commas.")] = "",
    lanes: Annotated[str, typer.Option(help="Only these lanes, such as P0,P1.")] = "",
    health_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Answer /healthz and /readyz here, on all addresses.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """A worker alone: takes tasks and runs their handlers. Never migrates."""
    only_lanes = [_lane(text) for text in _split(lanes)]
    bound = None if health_port is None else serve.listen("0.0.0.0", health_port)  # noqa: S104 - whoever asks is elsewhere
    settings = _settings("127.0.0.1", 8000)
    if concurrency is not None:
        settings.concurrency = concurrency
    board = open_board(settings)
    consumer = board.make_consumer(only_types=_split(types) or None, only_lanes=only_lanes or None)
    _enter(consumer)
    health = HealthPort(board, bound) if bound is not None else None

    def ready() -> None:
        port = health.port if health else None
        if as_json:
            told = {"worker": consumer.name, "concurrency": settings.concurrency, "health_port": port}
            print(json.dumps(told), flush=True)
            return
        remark(f"The worker {consumer.name} takes up to {settings.concurrency} tasks at the same time.")
        if port is not None:
            remark(f"Its health is told at port {port}: /healthz and /readyz.")

    if health:
        health.start()
    serve.serve_consumer(board, ready)


def _settings(host: str, port: int) -> Settings:
    """The settings of a process, its logging set up; without a public address of its own, links lead to this one."""
    settings = all_settings.load()
    if "public_url" not in settings.model_fields_set:
        name = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host  # noqa: S104 - compared, not bound
        settings.public_url = f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
    logs.set_up(settings.log_format)
    place.check(settings.database_url)
    for unknown in all_settings.unknown_names():
        remark(f"{unknown} is not a setting of the board; it is ignored.")
    return settings


def _enter(consumer: Consumer) -> None:
    """Into the table of workers; others on the same SQLite file are no danger, but seldom what was wanted."""
    if others := consumer.enter():
        remark(
            f"Another worker uses this SQLite database too ({', '.join(others)}). That is safe, but one process with a "
            "larger BOARD_CONCURRENCY does the same work faster; for several, use PostgreSQL."
        )


def _greet(board: Board, as_json: bool, *, worker: bool) -> None:
    with board.db.write() as tx:
        token = links.owner_link(tx)
    url = board.settings.public_url
    link = links.address(url, token) if token else None
    if as_json:
        print(json.dumps({"url": url, "setup_link": link, "demo": board.demo, "worker": worker}), flush=True)
        return
    lines = [f"The board is at {url}"]
    if link:
        lines.append(f"No owner yet: open this link once, within 24 hours, to set your password: {link}")
    if board.demo:
        lines.append("This is a demo: a stand-in answers instead of Dify, and the tasks are samples.")
    print("\n".join(lines), file=sys.stdout, flush=True)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _lane(text: str) -> int:
    if text not in ("P0", "P1", "P2", "P3"):
        raise typer.BadParameter(f"“{text}” is not a lane; the lanes are P0, P1, P2 and P3.", param_hint="--lanes")
    return int(text[1])
