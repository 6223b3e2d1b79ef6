"""`board subscriptions`: who hears of events; made by programs over HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from board.access.rights import CONSOLE
from board.cli.context import opened
from board.cli.output import AsJson, print_json, print_table
from board.effects import subscriptions
from board.effects.subscribed import document

app = typer.Typer(help="Who hears of events.", no_args_is_help=True)


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List all subscriptions, with what waits for each and what was given up."""
    with opened() as board, board.db.read() as connection:
        found = [document(connection, row) for row in subscriptions.visible(connection, CONSOLE)]
    if as_json:
        print_json({"data": found})
    else:
        rows = [
            (
                it["id"],
                it["url"],
                ",".join(it["events"]),
                ",".join(it["types"] or ["all"]),
                it["status"],
                str(it["waiting"]),
                str(it["given_up"]),
                it["owner"],
            )
            for it in found
        ]
        print_table(("ID", "ADDRESS", "EVENTS", "TYPES", "STATUS", "WAITING", "GIVEN UP", "MADE BY"), rows)


@app.command()
def remove(
    subscription: Annotated[str, typer.Argument(metavar="ID", help="As in `board subscriptions list`.")],
    as_json: AsJson = False,
) -> None:
    """Stop a subscription at once; what waits for it is dropped."""
    with opened() as board, board.db.write() as tx:
        subscriptions.remove(tx, subscription, CONSOLE)
    if as_json:
        print_json({"id": subscription, "deleted": True})
    else:
        print(f"The subscription {subscription} hears of nothing any more.")
