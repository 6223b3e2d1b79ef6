"""Comments on tasks, and whom they call by name.

`@li@example.org` calls a person, `@li` the only person whose address begins so, `@sales` a group. The sign may be full
width, and Chinese text needs no spaces around a name. What names nobody stays text, and its
writer learns nothing of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from sqlalchemy import Connection

from board.access import groups, users
from board.notices.kinds import Kind
from board.notices.noting import note_of
from board.tasks.history import NOTE, By, record

# Not inside of an address, of which the first @ is no call.
CALL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[@＠]((?:[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)|(?:[A-Za-z0-9][A-Za-z0-9._-]*))"
)
MOST = 20  # people and groups that one comment may call; more is an address list, and not a comment


def comment(tx: Connection, task: int, text: str, by: By) -> None:
    """Write a comment into the history of a task (its internal id), with whom it calls. Rights are the caller's."""
    called = mentioned(tx, text)
    record(tx, task, NOTE, by, note=text, data={"mentions": called} if called else None)
    if called:
        note_of(tx, Kind.MENTION, task, called)


def mentioned(connection: Connection, text: str) -> list[str]:
    """Whom a text calls, `user:EMAIL` or `group:NAME`, each once, in its order; at most MOST."""
    names = list(names_in(text))
    if not names:
        return []
    known = _known(connection)
    found = (known.get(name.lower()) or known.get(name.lower().rstrip(".-_")) for name in names)
    return list(dict.fromkeys(filter(None, found)))[:MOST]


def names_in(text: str) -> Iterator[str]:
    """What stands behind each sign."""
    return (found[1] for found in CALL.finditer(text))


def parts(text: str, called: Collection[str]) -> list[tuple[str, bool]]:
    """A text in pieces, each with whether it calls one of these; what names nobody is text. called: as from
    `mentioned`, when the text was written."""
    pieces: list[tuple[str, bool]] = []
    end = 0
    for found in CALL.finditer(text):
        pieces += [(text[end : found.start()], False), (found[0], _calls(found[1], called))]
        end = found.end()
    return [(piece, marked) for piece, marked in [*pieces, (text[end:], False)] if piece]


def _calls(name: str, called: Collection[str]) -> bool:
    """Whether somebody of these was meant by it."""
    names = {name.lower(), name.lower().rstrip(".-_")}
    return any({whole := identity.partition(":")[2].lower(), whole.partition("@")[0]} & names for identity in called)


def _known(connection: Connection) -> dict[str, str]:
    """Who is meant by a name in small letters. Of names that several have, the whole address and the group count."""
    people = [person.email for person in users.list_users(connection) if not person.disabled]
    short: dict[str, list[str]] = {}
    for email in people:
        short.setdefault(email.partition("@")[0], []).append(email)
    known = {name: f"user:{emails[0]}" for name, emails in short.items() if len(emails) == 1}
    known |= {name.lower(): f"group:{name}" for name in groups.list_groups(connection)}
    return known | {email: f"user:{email}" for email in people}
