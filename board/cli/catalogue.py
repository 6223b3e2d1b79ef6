"""`board types` and `board connections`: what kinds of work there are, and where they call."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from board.access.installation import open_vault
from board.access.rights import CONSOLE
from board.catalogue import store
from board.catalogue.apply import Applied, apply, parse
from board.cli.context import Context, opened
from board.cli.output import AsJson, day, print_json, print_table, remark
from board.worker.registry import load_handlers

types = typer.Typer(help="Task types.", no_args_is_help=True)
connections = typer.Typer(help="Connections to Dify and webhooks.", no_args_is_help=True)


@types.command("apply")
def apply_files(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="YAML with types, connections or both.")],
    as_json: AsJson = False,
) -> None:
    """Apply YAML files: all of them, or nothing where any part is wrong. `${NAME}` is taken from the environment."""
    data: dict[str, list[Any]] = {"types": [], "connections": []}
    for file in files:
        for key, items in parse(file.read_text(encoding="utf-8")).items():
            data[key] += items
    with opened() as board:
        _tell(_apply(board, data), as_json)


@types.command("list")
def list_types(as_json: AsJson = False) -> None:
    """List the current types."""
    with opened() as board, board.db.read() as connection:
        rows = store.list_types(connection)
    if as_json:
        print_json({"data": [{**row["spec"], "version": row["version"]} for row in rows]})
    else:
        table = [(r["name"], str(r["version"]), r["spec"]["handler"]["use"], day(r["created_at"])) for r in rows]
        print_table(("NAME", "VERSION", "HANDLER", "SINCE"), table)


@types.command("export")
def export_types(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME…]", help="All, where none is named.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print types as YAML that `types apply` takes."""
    with opened() as board, board.db.read() as connection:
        specs = [row["spec"] for row in store.list_types(connection) if not names or row["name"] in names]
    if as_json:
        print_json({"types": specs})
    else:
        yaml.safe_dump({"types": specs}, sys.stdout, allow_unicode=True, sort_keys=False)


@connections.command("set")
def set_connection(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    kind: Annotated[str, typer.Option(help="dify, webhook, files, feishu, dingtalk, wecom, slack, teams or telegram.")],
    url: Annotated[
        str | None,
        typer.Option(help="Dify: the API address, ending in /v1. Webhook, chat: the whole address to call."),
    ] = None,
    key: Annotated[str | None, typer.Option(help="Dify: the app's API key. Telegram: the bot's token.")] = None,
    secret: Annotated[str | None, typer.Option(help="What signs calls: webhook, feishu, dingtalk.")] = None,
    chat: Annotated[str | None, typer.Option(help="Telegram: the chat's number.")] = None,
    idempotent: Annotated[bool, typer.Option(help="The receiver tells repeats by Idempotency-Key.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make or change a connection."""
    spec: dict[str, Any] = {"name": name, "kind": kind, "url": url, "key": key, "secret": secret, "chat": chat}
    spec = {field: value for field, value in spec.items() if value is not None}
    if idempotent:
        spec["idempotent"] = True
    with opened() as board:
        _tell(_apply(board, {"connections": [spec]}), as_json)


@connections.command("list")
def list_connections(as_json: AsJson = False) -> None:
    """List all connections, without their secrets."""
    with opened() as board, board.db.read() as connection:
        rows = [store.shown_connection(row) for row in store.list_connections(connection)]
    if as_json:
        print_json({"data": rows})
    else:
        table = [(r["name"], r["kind"], r["url"], "yes" if r["has_secrets"] else "no") for r in rows]
        print_table(("NAME", "KIND", "URL", "SECRET"), table)


def _apply(board: Context, data: dict[str, Any]) -> Applied:
    vault = open_vault(board.settings, board.db)
    with board.db.write() as tx:
        return apply(tx, data, handlers=load_handlers(), vault=vault, author=CONSOLE.identity)


def _tell(applied: Applied, as_json: bool) -> None:
    if as_json:
        print_json(asdict(applied))
        return
    for warning in applied.warnings:
        remark(warning)
    for word in ("created", "updated", "unchanged"):
        for name in getattr(applied, word):
            print(f"{word}: {name}")
