"""`board groups`: people and keys under one name, for the `reviewers` of a type."""

from __future__ import annotations

from typing import Annotated

import typer

from board.access import groups
from board.cli.context import opened
from board.cli.output import AsJson, print_json, print_table, remark

app = typer.Typer(help="People and keys under one name.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The group.")]
Members = Annotated[list[str], typer.Argument(metavar="MEMBER...", help="Mail addresses of users, or key:NAME.")]


@app.command()
def add(name: Name, as_json: AsJson = False) -> None:
    """Make a group."""
    with opened() as board, board.db.write() as tx:
        groups.add(tx, name)
    _say({"name": name, "members": []}, f"The group {name} is made; nobody is in it yet.", as_json)


@app.command()
def join(name: Name, members: Members, as_json: AsJson = False) -> None:
    """Take people and keys into a group; it holds at once, for open reviews too."""
    with opened() as board, board.db.write() as tx:
        for member in members:
            groups.join(tx, name, member)
        inside = groups.members(tx, name)
    _say({"name": name, "members": inside}, f"In {name}: {', '.join(inside)}", as_json)


@app.command()
def leave(name: Name, members: Members, as_json: AsJson = False) -> None:
    """Take people and keys out of a group."""
    with opened() as board, board.db.write() as tx:
        for member in members:
            groups.leave(tx, name, member)
        inside = groups.members(tx, name)
    _say({"name": name, "members": inside}, f"In {name}: {', '.join(inside) or 'nobody'}", as_json)


@app.command()
def remove(name: Name, as_json: AsJson = False) -> None:
    """Remove a group; a type that names it has nobody by it."""
    with opened() as board, board.db.write() as tx:
        groups.remove(tx, name)
    _say({"name": name, "members": None}, f"The group {name} is removed.", as_json)


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List groups with their members."""
    with opened() as board, board.db.read() as connection:
        found = groups.list_groups(connection)
    if as_json:
        print_json({"data": [{"name": name, "members": inside} for name, inside in found.items()]})
    else:
        print_table(("GROUP", "MEMBERS"), [(name, ", ".join(inside)) for name, inside in found.items()])


def _say(answer: dict[str, object], sentence: str, as_json: bool) -> None:
    if as_json:
        print_json(answer)
    else:
        remark(sentence)
