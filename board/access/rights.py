"""Who may do what: the one table of rights. API, pages and command line all ask `require`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from board.tasks.history import By


class Scope(StrEnum):
    """What an API key may be given. `admin` includes all others."""

    SUBMIT = "submit"
    READ = "read"
    WORK = "work"
    REVIEW = "review"
    ADMIN = "admin"


class Role(StrEnum):
    OWNER = "owner"
    OPERATOR = "operator"
    REVIEWER = "reviewer"
    VIEWER = "viewer"


class Act(StrEnum):
    """Everything that is guarded. "own" acts hold for tasks which the actor has put in."""

    SUBMIT = "submit"
    READ_OWN = "read_own"
    READ = "read"  # every task; so also to subscribe to what happens to them
    OPERATE_OWN = "operate_own"  # edit, cancel, requeue
    OPERATE = "operate"
    REVIEW = "review"
    WORK = "work"
    UPLOAD = "upload"
    ADMIN = "admin"  # types, connections, users, keys


_READ = frozenset({Act.READ, Act.READ_OWN})
_SUBMIT = frozenset({Act.SUBMIT, Act.READ_OWN, Act.OPERATE_OWN, Act.UPLOAD})

BY_SCOPE: dict[Scope, frozenset[Act]] = {
    Scope.SUBMIT: _SUBMIT,
    Scope.READ: _READ,
    Scope.WORK: frozenset({Act.WORK, Act.UPLOAD}),
    Scope.REVIEW: frozenset({Act.REVIEW}) | _READ,  # nobody can decide about what he cannot see
    Scope.ADMIN: frozenset(Act),
}
BY_ROLE: dict[Role, frozenset[Act]] = {
    Role.OWNER: frozenset(Act),
    Role.OPERATOR: _SUBMIT | _READ | {Act.OPERATE, Act.REVIEW},
    Role.REVIEWER: _READ | {Act.REVIEW},
    Role.VIEWER: _READ,
}


class Forbidden(Exception):
    """The actor may not do this. The text says what would be needed."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks: a signed-in person (name: the mail address) or an API key (name: the key's name)."""

    kind: str  # "person" or "key"
    name: str
    acts: frozenset[Act]
    scopes: tuple[str, ...] = ()
    role: str | None = None
    lang: str | None = None
    rate: str | None = None  # of a key: how many new tasks it may put in, such as 60/min
    max_waiting: int | None = None  # of a key: how many of its tasks may wait at the same time

    @property
    def identity(self) -> str:
        """`user:EMAIL` or `key:NAME`: how the actor stands in rows and on the wire."""
        return f"{'user' if self.kind == 'person' else self.kind}:{self.name}"

    def by(self, channel: str) -> By:
        return By(self.kind, self.name, channel)

    def may(self, act: Act, *, own: bool = False) -> bool:
        """own: the thing asked about was put in by this actor."""
        if act in self.acts:
            return True
        weaker = {Act.READ: Act.READ_OWN, Act.OPERATE: Act.OPERATE_OWN}.get(act)
        return own and weaker in self.acts

    def may_operate(self, task: Mapping[str, Any]) -> bool:
        """Whether the actor may edit, cancel or requeue this task (a row of `tasks`)."""
        return self.may(Act.OPERATE, own=task["requester"] == self.identity)

    def may_manage(self, owner: str) -> bool:
        """Whether the actor may see, change and remove a subscription that `owner` has made."""
        return self.may(Act.ADMIN) or (self.may(Act.READ) and owner == self.identity)

    def require(self, act: Act, *, own: bool = False) -> None:
        """Raise Forbidden unless the actor may."""
        if not self.may(act, own=own):
            what = "scope" if self.kind == "key" else "role"
            needed = [str(name) for name, acts in (BY_SCOPE if what == "scope" else BY_ROLE).items() if act in acts]
            raise Forbidden(
                f"This {'key' if what == 'scope' else 'account'} may not do that; it needs the {what} "
                f"{' or '.join(needed)}."
            )


def key_actor(name: str, scopes: list[str], rate: str | None = None, max_waiting: int | None = None) -> Actor:
    acts = frozenset(act for scope in scopes for act in BY_SCOPE[Scope(scope)])
    return Actor("key", name, acts, scopes=tuple(scopes), rate=rate, max_waiting=max_waiting)


def person_actor(email: str, role: str, lang: str | None = None) -> Actor:
    return Actor("person", email, BY_ROLE[Role(role)], role=role, lang=lang)


# The command line runs on the board's own machine, with its database and key at hand: it may do everything.
CONSOLE = Actor("person", "console", frozenset(Act), role="owner")
