"""Work on files by this machine: pictures, documents, tables, films, archives.

Parsing happens in child processes that may be lost without harm.
"""

from __future__ import annotations

from collections.abc import Sequence

from board.ports import Handler


def handlers() -> Sequence[Handler]:
    """Entry point of `board.handlers`."""
    from integrations.files.catalogue import all_handlers

    return all_handlers()
