"""`board reviews`: links by which one person opens one review."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from board import settings as all_settings
from board.access import users
from board.access.errors import AccessError
from board.access.rights import CONSOLE
from board.cli.output import AsJson, print_json, print_table, remark
from board.rooms import open_board
from board.tasks.view import time

app = typer.Typer(help="Links by which one person opens one review.", no_args_is_help=True)
ReviewId = Annotated[int, typer.Argument(metavar="ID", help="The review, as in its address /reviews/ID.")]
_CHANNEL = "cli"


@app.command()
def link(
    review: ReviewId,
    user: Annotated[str, typer.Option(help="Whom it is for: the mail address of somebody who may decide it.")],
    as_json: AsJson = False,
) -> None:
    """Make a link; prints its address, this once."""
    with closing(open_board(all_settings.load())) as board, board.db.write() as tx:
        person = users.find_by_email(tx, user)
        if person is None:
            raise AccessError("There is no user with the address {email}.", code="not_found", email=user)
        made = board.review_links.issue(tx, review, person.id, purpose=_CHANNEL, by=CONSOLE.by(_CHANNEL))
    until = time(made.expires_at)
    if as_json:
        print_json({"id": str(made.id), "user": made.email, "url": made.url, "expires_at": until})
    else:
        remark(f"For {made.email} alone, until {until}; it is not shown again:")
        print(made.url)


@app.command()
def links(review: ReviewId, as_json: AsJson = False) -> None:
    """List the links to a review; never their addresses."""
    with closing(open_board(all_settings.load())) as board, board.db.read() as connection:
        found = board.review_links.of_review(connection, review)
    moments = ("created_at", "expires_at", "opened_at", "revoked_at")
    rows = [
        {"id": str(row["id"]), "user": row["email"], "purpose": row["purpose"]}
        | {name: time(row[name]) for name in moments}
        for row in found
    ]
    if as_json:
        print_json({"data": rows})
    else:
        names = ("ID", "USER", "FOR", "MADE", "UNTIL", "OPENED", "WITHDRAWN")
        print_table(names, [tuple(value or "-" for value in row.values()) for row in rows])


@app.command()
def unlink(
    review: ReviewId,
    number: Annotated[int, typer.Argument(metavar="LINK", help="The link's ID, as in the list.")],
    as_json: AsJson = False,
) -> None:
    """Withdraw a link: it opens nothing from now on."""
    with closing(open_board(all_settings.load())) as board, board.db.write() as tx:
        board.review_links.revoke(tx, review, number, CONSOLE.by(_CHANNEL))
    if as_json:
        print_json({"id": str(number), "revoked": True})
    else:
        print(f"The link {number} opens nothing any more.")
