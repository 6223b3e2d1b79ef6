"""`board users`: people who may sign in."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from board import settings
from board.access import links, users
from board.access.errors import AccessError
from board.access.rights import Role
from board.cli.context import opened
from board.cli.output import AsJson, day, print_json, print_table, remark

app = typer.Typer(help="People who may sign in.", no_args_is_help=True)
Email = Annotated[str, typer.Argument(metavar="EMAIL", help="The mail address the person signs in with.")]


@app.command()
def add(
    email: Email,
    role: Annotated[Role, typer.Option(help="What the person may do.")] = Role.VIEWER,
    as_json: AsJson = False,
) -> None:
    """Add a person; prints a link, good for one use within 24 hours, to set a password with."""
    with opened() as board, board.db.write() as tx:
        person = users.add(tx, email, role)
        link = links.address(board.settings.public_url, links.user_link(tx, person.id))
    _show_link(person, link, as_json)


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List everybody."""
    with opened() as board, board.db.read() as connection:
        people = users.list_users(connection)
    if as_json:
        print_json({"data": [asdict(person) for person in people]})
    else:
        rows = [(person.email, person.role, _standing(person), day(person.created_at)) for person in people]
        print_table(("EMAIL", "ROLE", "STATUS", "ADDED"), rows)


@app.command()
def link(email: Email, as_json: AsJson = False) -> None:
    """Print a fresh set-up link, for a person who lost the first one or forgot the password."""
    with opened() as board, board.db.write() as tx:
        person = users.find_by_email(tx, email)
        if person is None:
            raise AccessError("There is no user with the address {email}.", code="not_found", email=email)
        fresh = links.address(board.settings.public_url, links.user_link(tx, person.id))
    _show_link(person, fresh, as_json)


def _show_link(person: users.Person, link: str, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(person), "setup_url": link})
    else:
        if "public_url" not in settings.load().model_fields_set:
            remark("BOARD_PUBLIC_URL is not set, so the link leads to port 8000 of this machine.")
        remark(f"Give this link to {person.email} ({person.role}); it serves once, within 24 hours:")
        print(link)


def _standing(person: users.Person) -> str:
    if person.disabled:
        return "disabled"
    return "active" if person.has_password else "invited"
