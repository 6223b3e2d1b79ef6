"""The approvals of a review that needs several: who has given one for what can be seen now."""

from __future__ import annotations

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from board.db.clock import now
from board.review.models import approvals


def given(connection: Connection, review: RowMapping, version: int | None = None) -> tuple[str, ...]:
    """Who has approved this version, the present one if none is said, in the order in which they did."""
    of = approvals.c.review == review["id"], approvals.c.version == (version or review["version"])
    query = select(approvals.c.approver).where(*of).order_by(approvals.c.at, approvals.c.approver)
    return tuple(connection.execute(query).scalars())


def give(tx: Connection, review: RowMapping, approver: str) -> None:
    """An approval of what was seen before makes way for this one."""
    take_back(tx, review, approver)
    row = {"review": review["id"], "approver": approver, "version": review["version"], "at": now()}
    tx.execute(insert(approvals).values(**row))


def take_back(tx: Connection, review: RowMapping, approver: str) -> None:
    tx.execute(delete(approvals).where(approvals.c.review == review["id"], approvals.c.approver == approver))


def reopened(tx: Connection, review: RowMapping, approver: str) -> None:
    """The last approval was undone: the content is the same, so what the others have said holds for its new version."""
    take_back(tx, review, approver)
    mine = approvals.c.review == review["id"], approvals.c.version == review["version"]
    tx.execute(update(approvals).where(*mine).values(version=review["version"] + 1))
