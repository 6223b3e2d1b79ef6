"""The `board` command. Each group of commands is a file of its own: thin, the rule stays in the room it calls.

A group file holds one `typer.Typer`; a command without a group is one function. Both have their line below, and are
loaded when they are called. Every command takes `--json` (`output.AsJson`), opens the board with `context.opened()`,
prints its answer to stdout and everything else to stderr, and lets errors rise: `main` says them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from board.cli.lazy import PLAIN, Entry, group_of

COMMANDS = {
    "up": Entry("serve:up", "Everything in one process: the API, the pages and the work."),
    "api": Entry("serve:api", "The API and the pages alone; workers run beside it."),
    "worker": Entry("serve:worker", "A worker alone: takes tasks and runs their handlers."),
    "migrate": Entry("migrate:migrate", "Bring the database's schema up to this program."),
    "doctor": Entry("doctor:doctor", "Check settings, data, database, clock, key and Redis."),
    "submit": Entry("tasks:submit", "Put tasks in."),
    "tasks": Entry("tasks:tasks", "List tasks, newest first."),
    "show": Entry("tasks:show", "Show one task with its history."),
    "cancel": Entry("tasks:cancel", "Cancel a task; a running one is asked to stop."),
    "requeue": Entry("tasks:requeue", "Put a failed or cancelled task back."),
    "acknowledge": Entry("tasks:acknowledge", "Say that failures were seen."),
    "archive": Entry("archive:archive", "Take what is old out of the tables, now."),
    "backup": Entry("backup:backup", "Write the SQLite database to a new file."),
    "restore": Entry("backup:restore", "Put a backup in the place of the SQLite database."),
    "report": Entry("report:report", "The report of a week."),
    "types": Entry("catalogue:types", "Task types."),
    "connections": Entry("catalogue:connections", "Connections to Dify and webhooks."),
    "reviews": Entry("reviews:app", "Links by which one person opens one review."),
    "users": Entry("users:app", "People who may sign in."),
    "groups": Entry("groups:app", "People and keys under one name."),
    "keys": Entry("keys:app", "API keys for programs."),
    "subscriptions": Entry("subscriptions:app", "Who hears of events."),
}
app = typer.Typer(name="board", no_args_is_help=True, cls=group_of(COMMANDS), **PLAIN)


@app.callback()
def board() -> None:
    """The AI Task Board: tasks, reviews and side effects between Dify, n8n and people."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and end the process: exit code 0 good, 1 the request failed, 2 wrong use.

    arguments: without the program's name; the process's own if left out.
    """
    try:
        app(arguments, prog_name="board")
    except Exception as error:
        from board.cli.errors import sentence  # which knows the errors of all rooms, and so loads them

        print(sentence(error), file=sys.stderr)
        sys.exit(1)
