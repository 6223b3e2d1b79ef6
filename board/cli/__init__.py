"""The `board` command. Each group of commands is a file of its own: thin, the rule stays in the room it calls.

A group file holds one `typer.Typer` named `app` and is added below with `add_typer`; a command without a group is one
function, added with `app.command()`. Every command takes `--json` (`output.AsJson`), opens the board with
`context.opened()`, prints its answer to stdout and everything else to stderr, and lets errors rise: `main` says them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import typer

from board.cli import catalogue, keys, serve, tasks, users
from board.cli.archive import archive
from board.cli.backup import backup, restore
from board.cli.doctor import doctor
from board.cli.errors import sentence
from board.cli.migrate import migrate

app = typer.Typer(
    name="board",
    help="The AI Task Board: tasks, reviews and side effects between Dify, n8n and people.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # they print tracebacks, and the values of variables with them
    rich_markup_mode=None,  # plain text: no boxes around errors in logs
)
_COMMANDS: tuple[Callable[..., None], ...] = (
    serve.up,
    serve.api,
    serve.worker,
    migrate,
    doctor,
    tasks.submit,
    tasks.tasks,
    tasks.show,
    tasks.cancel,
    tasks.requeue,
    tasks.acknowledge,
    archive,
    backup,
    restore,
)
for command in _COMMANDS:
    app.command()(command)
app.add_typer(catalogue.types, name="types")
app.add_typer(catalogue.connections, name="connections")
app.add_typer(users.app, name="users")
app.add_typer(keys.app, name="keys")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and end the process: exit code 0 good, 1 the request failed, 2 wrong use.

    arguments: without the program's name; the process's own if left out.
    """
    try:
        app(arguments, prog_name="board")
    except Exception as error:
        print(sentence(error), file=sys.stderr)
        sys.exit(1)
