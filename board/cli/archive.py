"""`board archive`: take what is old out of the tables, now."""

from __future__ import annotations

from typing import Annotated

import typer

from board import settings as all_settings
from board.cli.output import AsJson, print_json, print_table, remark
from board.rooms import open_board

_KEPT = {
    "not_acknowledged": "failed, and nobody has acknowledged it (`board acknowledge ID`)",
    "open_operation": "a call of it is still open, or its outcome unknown",
    "open_review": "a review of it is open",
}


def archive(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would go.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write tasks that ended longer ago than their type's retention to the archive, and remove them.

    The worker that leads does it by itself every hour.
    """
    board = open_board(all_settings.load())
    found = board.archive.preview() if dry_run else board.archive.run()
    folder = str(board.archive.shelf.folder.absolute())
    rows = [(name, status, number) for (name, status), number in sorted(found.archived.items()) if number]
    total = sum(number for _, _, number in rows)
    if as_json:
        data = [{"type": name, "status": status, "count": number} for name, status, number in rows]
        print_json({"archived": total, "dry_run": dry_run, "data": data, "kept": dict(found.kept), "folder": folder})
        return
    if rows:
        print_table(("TYPE", "STATUS", "TASKS"), [(name, status, str(number)) for name, status, number in rows])
    tasks = f"{total} task{'' if total == 1 else 's'}"
    print(f"{tasks} would go to {folder}." if dry_run else f"{tasks} went to {folder}.")
    for reason, number in sorted(found.kept.items()):
        remark(f"{number} kept although the time is over: {_KEPT[reason]}.")
