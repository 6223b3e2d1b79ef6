"""Things that only one transaction at a time may do, named by a number of their own."""

from __future__ import annotations

from enum import IntEnum

from sqlalchemy import Connection, func, select


class Turn(IntEnum):
    """Any numbers, the same in all processes and different from each other."""

    MANY_TASKS = 7_314_008_116  # two writers of many rows in different orders would wait for each other for ever
    CATALOGUE = 7_314_008_117  # two writers of one type would both make the same version
    FILES = 7_314_008_118  # content is removed when no file has it, and none may come to rely on it meanwhile
    NOTICES = 7_314_008_121  # a thing that is noted goes to its routes once, and a message is taken by one process
    ALERTS = 7_314_008_122  # a rule that holds rings once
    ANNOUNCEMENTS = 7_314_008_119  # two who write out events of one task would each take theirs for the first


def wait_for_turn(tx: Connection, turn: Turn) -> None:
    """Wait until no other transaction has this turn; it is given back with the commit. SQLite has one writer anyway."""
    if tx.dialect.name == "postgresql":
        tx.execute(select(func.pg_advisory_xact_lock(int(turn))))
