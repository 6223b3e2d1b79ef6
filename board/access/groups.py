"""Groups: people and keys under one name. Read at each decision, so a change holds at once, for open reviews too."""

from __future__ import annotations

import re

from sqlalchemy import Connection, delete, insert, select

from board.access import keys, users
from board.access.errors import AccessError
from board.access.models import group_members, groups
from board.db.clock import now
from board.db.insert import insert_once

# No @ and no colon: in a list of reviewers a group is told from a mail address and from a key by them.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


def add(tx: Connection, name: str) -> int:
    """A new group without members. AccessError: bad name, name taken."""
    if not _NAME.fullmatch(name):
        raise AccessError(
            "“{name}” cannot be the name of a group: use letters, digits, dot, underscore and hyphen, at most 120.",
            code="bad_name",
            field="name",
            name=name,
        )
    made = insert_once(tx, groups, "name", {"name": name, "created_at": now()})
    if made is None:
        raise AccessError("There is a group {name} already.", code="name_taken", field="name", name=name)
    return int(made["id"])


def remove(tx: Connection, name: str) -> None:
    """AccessError when there is no such group."""
    tx.execute(delete(groups).where(groups.c.id == _id(tx, name)))


def join(tx: Connection, name: str, member: str) -> str:
    """member: a mail address or `key:NAME`. Gives the identity back. AccessError: no such group, person or key."""
    group, identity = _id(tx, name), _identity(tx, member)
    if identity not in members(tx, name):
        tx.execute(insert(group_members).values(group=group, member=identity))
    return identity


def leave(tx: Connection, name: str, member: str) -> None:
    """AccessError when there is no such group, or it has no such member."""
    group = _id(tx, name)
    identity = member if member.startswith("key:") else f"user:{member.removeprefix('user:').lower()}"
    gone = tx.execute(delete(group_members).where(group_members.c.group == group, group_members.c.member == identity))
    if not gone.rowcount:
        raise AccessError("{member} is not in the group {name}.", code="not_found", member=member, name=name)


def members(connection: Connection, name: str) -> list[str]:
    """Identities in alphabetical order; none where there is no such group."""
    query = select(group_members.c.member).join(groups, groups.c.id == group_members.c.group)
    return list(connection.execute(query.where(groups.c.name == name).order_by(group_members.c.member)).scalars())


def of(connection: Connection, identity: str) -> frozenset[str]:
    """The names of the groups that somebody is in."""
    query = select(groups.c.name).join(group_members, groups.c.id == group_members.c.group)
    return frozenset(connection.execute(query.where(group_members.c.member == identity)).scalars())


def list_groups(connection: Connection) -> dict[str, list[str]]:
    """The members of every group, by its name."""
    query = select(groups.c.name, group_members.c.member).join_from(groups, group_members, isouter=True)
    found: dict[str, list[str]] = {}
    for name, member in connection.execute(query.order_by(groups.c.name, group_members.c.member)):
        found.setdefault(name, []).extend([member] if member else [])
    return found


def _id(connection: Connection, name: str) -> int:
    found = connection.execute(select(groups.c.id).where(groups.c.name == name)).scalar()
    if found is None:
        raise AccessError("There is no group {name}.", code="not_found", name=name)
    return int(found)


def _identity(connection: Connection, member: str) -> str:
    if member.startswith("key:"):
        if all(key.name != member.removeprefix("key:") for key in keys.list_keys(connection)):
            raise AccessError("There is no key {name}.", code="not_found", name=member.removeprefix("key:"))
        return member
    person = users.find_by_email(connection, member.removeprefix("user:"))
    if person is None:
        raise AccessError("There is no user with the address {email}.", code="not_found", email=member)
    return f"user:{person.email}"
