"""A breaker for each connection: where calls fail one after the other nothing more is begun for a while.

Shared by all processes over one small table, which is empty while everything works. A connection is shut after
`FAILURES` in a row; when its time is over one attempt tries it, and the others wait for how that goes. What was begun
before is asked about all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from board.db.clock import read_now
from board.effects.models import breakers
from board.ports import Cause, Failure
from board.tasks.text import clean
from board.tasks.view import time

FAILURES = 20  # in a row: more than the tries of one task that is put back again and again; soon reached in an outage
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 600.0  # seconds; twice as long each time that the trial fails
TRIAL_SECONDS = 60.0  # nobody else tries so long; a worker that dies in its trial is followed by another one
MOST_TROUBLE = 300  # characters


def counts(failure: Failure) -> bool:
    """Whether a failure is the connection's: nobody answered, or an answer of a broken server."""
    return failure.cause in (Cause.NETWORK, Cause.UPSTREAM_5XX) or (failure.http_status or 0) >= 500


def failed(tx: Connection, name: str, trouble: str, *, trial: bool = False) -> None:
    """One more failure in a row. trial: of the attempt that tried a shut connection."""
    moment = read_now(tx)
    row: dict[str, Any] = {"connection": name, "failures": 0, "shuts": 0, "since": moment, "trouble": ""}
    dialect = sqlite if tx.dialect.name == "sqlite" else postgresql
    tx.execute(dialect.insert(breakers).values(**row).on_conflict_do_nothing())
    stored = _locked(tx, name)
    if stored is None:  # it has just worked for somebody else
        return
    values: dict[str, Any] = {"failures": stored["failures"] + 1, "trouble": clean(trouble)[:MOST_TROUBLE]}
    if trial or (stored["until"] is None and values["failures"] >= FAILURES):
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(stored["shuts"], 10))
        values |= {"shuts": stored["shuts"] + 1, "until": moment + timedelta(seconds=pause)}
    tx.execute(update(breakers).where(breakers.c.connection == name).values(**values))


def worked(tx: Connection, name: str) -> None:
    """An answer came: it is open again."""
    tx.execute(delete(breakers).where(breakers.c.connection == name))


def may_try(tx: Connection, name: str) -> tuple[float, bool]:
    """The seconds until an attempt may begin, 0 for now; and whether it is the one that tries a shut connection."""
    stored, moment = _locked(tx, name), read_now(tx)
    if stored is None or stored["until"] is None:
        return 0.0, False
    left = float((stored["until"] - moment).total_seconds())
    if left > 0:
        return left, False
    until = moment + timedelta(seconds=TRIAL_SECONDS)
    tx.execute(update(breakers).where(breakers.c.connection == name).values(until=until))
    return 0.0, True


def read(connection: Connection) -> Sequence[RowMapping]:
    """Every connection that fails."""
    return connection.execute(select(breakers)).mappings().all()


def is_shut(row: RowMapping | Mapping[str, Any], moment: datetime) -> bool:
    return row["until"] is not None and row["until"] > moment


def document(row: RowMapping | None, moment: datetime) -> dict[str, Any]:
    """The breaker of a connection as the API shows it. row: None where everything works."""
    if row is None:
        return {"state": "closed", "failures": 0, "since": None, "until": None, "trouble": None}
    state = "closed" if row["until"] is None else "open" if is_shut(row, moment) else "half_open"
    return {
        "state": state,
        "failures": row["failures"],
        "since": time(row["since"]),
        "until": time(row["until"]),
        "trouble": row["trouble"],
    }


def _locked(tx: Connection, name: str) -> RowMapping | None:
    query = select(breakers).where(breakers.c.connection == name)
    if tx.dialect.name == "postgresql":
        query = query.with_for_update()
    return tx.execute(query).mappings().first()
