"""`board keys`: API keys for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from board.access import keys
from board.access.rights import Scope
from board.cli.context import opened
from board.cli.output import AsJson, day, print_json, print_table, remark
from board.rates import parse_rate

app = typer.Typer(help="API keys for programs.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Stands in histories: name the program, such as n8n.")]


def _scopes(text: str) -> list[str]:
    """A comma list of scopes; an unknown one is wrong use, like an unknown option."""
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    for scope in wanted:
        if scope not in list(Scope):
            raise typer.BadParameter(
                f"“{scope}” is not a scope; the scopes are {', '.join(Scope)}.", param_hint="--scopes"
            )
    if not wanted:
        raise typer.BadParameter(f"name at least one of {', '.join(Scope)}.", param_hint="--scopes")
    return wanted


@app.command()
def create(
    name: Name,
    scopes: Annotated[str, typer.Option(help=f"What the key may do: {', '.join(Scope)}; separated by commas.")],
    rate: Annotated[str | None, typer.Option(help="How many new tasks it may put in, such as 600/min.")] = None,
    max_waiting: Annotated[
        int | None, typer.Option(min=1, max=keys.MOST_WAITING, help="How many of its tasks may wait at the same time.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key; prints the secret, this once."""
    wanted = _scopes(scopes)
    with opened() as board, board.db.write() as tx:
        secret = keys.create(tx, name, wanted, _rate(rate), max_waiting)
        made = keys.find(tx, secret, "")
        assert made is not None
    if as_json:
        limits = {"rate": made.rate, "max_waiting": made.max_waiting}
        print_json({"name": made.name, "scopes": made.scopes, **limits, "key": secret})
    else:
        remark(f"The key “{made.name}” ({', '.join(made.scopes)}); keep it now, it is not shown again:")
        print(secret)


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List all keys, revoked ones too; never their secrets."""
    with opened() as board, board.db.read() as connection:
        found = keys.list_keys(connection)
    if as_json:
        print_json({"data": [asdict(key) for key in found]})
    else:
        rows = [
            (
                key.name,
                f"{key.hint}…",
                ",".join(key.scopes),
                _limits(key),
                _standing(key),
                day(key.created_at),
            )
            for key in found
        ]
        print_table(("NAME", "KEY", "SCOPES", "LIMITS", "STATUS", "MADE"), rows)


@app.command()
def revoke(name: Name, as_json: AsJson = False) -> None:
    """Stop a key for good."""
    with opened() as board, board.db.write() as tx:
        keys.revoke(tx, name)
    if as_json:
        print_json({"name": name, "revoked": True})
    else:
        print(f"The key “{name}” opens nothing any more; processes that run hear of it within a second.")


def _rate(text: str | None) -> str | None:
    """A wrong one is wrong use, like an unknown scope."""
    if text is not None:
        try:
            parse_rate(text)
        except ValueError as error:
            raise typer.BadParameter(f"{error}.", param_hint="--rate") from error
    return text


def _limits(key: keys.Key) -> str:
    limits = key.limits or {}
    shown = [limits["rate"]] if "rate" in limits else []
    shown += [f"{limits['max_waiting']} waiting"] if "max_waiting" in limits else []
    return ", ".join(shown) or "-"


def _standing(key: keys.Key) -> str:
    return "revoked" if key.revoked_at else "active"
