"""How much of what a key has put in may wait: a program that sends faster than the board works is told to slow down."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from board.access.rights import Actor
from board.queue import usage
from board.tasks.models import WAITING_OF_KEYS, tasks

# Nobody knows when there is room again. Work flows at some tasks a second, and a program that waits this long and then
# sends what has gathered costs it nothing; n8n's five tries at five seconds reach two of these.
RETRY_SECONDS = 10


class TooMuchWaiting(Exception):
    """Of the key's tasks so many wait already. retry_after: whole seconds."""

    retry_after = RETRY_SECONDS

    def __init__(self, bound: int, number: int) -> None:
        new = "a new one" if number == 1 else f"{number} new ones"
        super().__init__(
            f"Of the tasks of this key at most {bound} may wait, and {new} would be more. Nothing was stored. "
            f"Send it again in {RETRY_SECONDS} seconds."
        )


class NeverWithinBound(Exception):
    """One call brings more than may ever wait."""

    def __init__(self, bound: int, number: int) -> None:
        super().__init__(
            f"Of the tasks of this key at most {bound} may wait, and this call holds {number}: "
            f"send at most {bound} at a time. Nothing was stored."
        )


def check(tx: Connection, actor: Actor, number: int) -> None:
    """Raises TooMuchWaiting, NeverWithinBound where `number` tasks that were just stored in this transaction are too
    many: it is undone. Waiting are those that have not begun, that wait for a retry or for their time."""
    bound = actor.max_waiting
    if bound is None:
        return
    if number > bound:
        raise NeverWithinBound(bound, number)
    # Whoever else puts in with this key counts behind this one, and sees what it has put in.
    usage.lock(tx, [f"intake:{actor.identity}"], wait=True)
    if waiting(tx, actor.identity, bound + 1) > bound:
        raise TooMuchWaiting(bound, number)


def waiting(connection: Connection, identity: str, most: int) -> int:
    """How many tasks of a key wait, counted up to `most`. Through ix_tasks_waiting_of, which holds nothing else: so it
    costs the same whatever other keys have put in, and however many have ended."""
    some = select(tasks.c.id).where(tasks.c.requester == identity, WAITING_OF_KEYS).limit(most)
    return connection.execute(select(func.count()).select_from(some.subquery())).scalar_one()
