"""Callbacks that come in: work that was started elsewhere and not waited for hands in its result, once.

The right to do so belongs to one attempt and travels as a token in an address. What comes early is kept, what is
repeated is answered alike, what is late is refused and noted. An answer is stored before it is confirmed, so it
survives the attempt that waits for it: the next one finds it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, RowMapping, select, update
from sqlalchemy.exc import NoResultFound

from board.db.clock import now, read_now
from board.db.engine import Database, after_commit
from board.db.many import insert_many
from board.effects.models import callback_rights
from board.ports import CalledBack, ErrorClass, JsonObject
from board.signals.signal import Call, Progress, Signal
from board.tasks.history import By, record
from board.tasks.ledger import Lease, Ledger, Moved
from board.tasks.models import attempts
from board.tasks.states import Move, Status
from board.tasks.view import time

BY = By("system", "callback", "api")
# As long as its task stands here, the attempt or the next one may still take an answer.
_OPEN = (Status.RUNNING, Status.RETRYING, Status.PENDING, Status.NEEDS_REVIEW)
# Moves after which what was started goes on, and its answer is still wanted.
_GOES_ON = (Move.CREATE, Move.CLAIM, Move.HAND_BACK, Move.RESCUE, Move.RECONCILE, Move.RUN_NOW, Move.ANSWER)
# Why a person is asked, in board.review.policy: a form of the work itself, which goes on with the answer.
_ASKED_MEANWHILE = "input_needed"
MAX_NOTED = 4000  # characters of a late result that the history keeps


class NoSuchRight(Exception):
    def __init__(self) -> None:
        super().__init__("There is no such callback address.")


class Late(Exception):
    """A callback that counts no more. code: callback_late, callback_differs. status: of its task."""

    def __init__(self, code: str, status: str, message: str) -> None:
        super().__init__(message)
        self.code, self.status = code, status


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is recorded under a right. answer: the body as it was taken; repeated: it came before."""

    task_id: str
    attempt: int
    answer: JsonObject
    at: datetime
    repeated: bool = False


def new_rights(tx: Connection, leases: Sequence[Lease]) -> dict[Lease, str]:
    """A right for each attempt. Returns the tokens, which are stored nowhere."""
    tokens = {lease: secrets.token_urlsafe(32) for lease in leases}
    moment = read_now(tx)
    rows = [
        {"token_hash": _hash(token), "task": lease.task, "attempt": lease.token, "created_at": moment}
        for lease, token in tokens.items()
    ]
    insert_many(tx, callback_rights, rows)
    return tokens


def find(connection: Connection, token: str) -> RowMapping:
    """The right behind a token. Raises NoSuchRight."""
    query = select(callback_rights).where(callback_rights.c.token_hash == _hash(token))
    row = connection.execute(query).mappings().first()
    if row is None:
        raise NoSuchRight
    return row


class Incoming:
    """Takes callbacks. tell: after the commit, those who wait for one, and those who watch."""

    def __init__(self, db: Database, ledger: Ledger, tell: Callable[[Signal], None]) -> None:
        self._db, self._ledger, self._tell = db, ledger, tell

    def take(self, token: str, body: JsonObject) -> Recorded:
        """Store what came. body: `status` and what belongs to it. Raises NoSuchRight, and Late for what is only noted
        in the task's history."""
        with self._db.write() as tx:
            right = find(tx, token)
            try:
                task = self._ledger.lock(tx, right["task"])
            except NoResultFound:  # it was archived in this moment
                raise NoSuchRight from None
            right = find(tx, token)  # as it stands under the lock
            taken = self._taken(tx, task, right, body)
        if isinstance(taken, Late):
            raise taken
        return taken

    def _taken(self, tx: Connection, task: RowMapping, right: RowMapping, body: JsonObject) -> Recorded | Late:
        known = partial(Recorded, task["task_id"], right["attempt"])
        if right["answer"] == body:
            return known(body, right["answered_at"], repeated=True)
        if right["answer"] is not None and body["status"] != "progress":
            said = f"This attempt was called back before, at {time(right['answered_at'])}, with another content."
            return _late(tx, right, body, Late("callback_differs", task["status"], f"{said} That stands."))
        if right["answer"] is not None or right["closed_at"] is not None or not _wanted(task):
            said = f"This callback comes too late: its attempt is over, and the task is {task['status']}."
            return _late(tx, right, body, Late("callback_late", task["status"], said))
        moment = read_now(tx)
        if body["status"] == "progress":
            self._progress(tx, task, body, moment)
            return known(body, moment)
        mine = update(callback_rights).where(callback_rights.c.id == right["id"])
        tx.execute(mine.values(answer=body, answered_at=moment))
        about = {"status": body["status"], "attempt": right["attempt"]}
        record(tx, task["id"], "called_back", BY, note=body.get("message"), data=about)
        if task["status"] == Status.RETRYING:  # it was to be asked about later: that is not needed any more
            task = self._ledger.lock(tx, task["id"])
            self._ledger.move(tx, task, Move.RUN_NOW, BY, changes={"ready_at": now()})
        after_commit(tx, partial(self._tell, Call.CALLED_BACK))
        return known(body, moment)

    def _progress(self, tx: Connection, task: RowMapping, body: JsonObject, moment: datetime) -> None:
        """Kept with the attempt that waits now, which may not be the one that began."""
        lease = Lease(task["id"], task["lease_token"])
        this = (attempts.c.task == lease.task) & (attempts.c.number == lease.token)
        former: JsonObject = tx.execute(select(attempts.c.progress).where(this)).scalar() or {}
        said = former | {name: body[name] for name in ("percent", "message") if name in body}
        tx.execute(update(attempts).where(this).values(progress=said | {"at": time(moment)}))
        after_commit(tx, partial(self._tell, Progress.told(lease, said.get("percent"), said.get("message"))))


def answers(connection: Connection, tasks: Sequence[int]) -> dict[int, CalledBack]:
    """What has come for these tasks and is still of use, by their internal ids; the first for each."""
    query = (
        select(callback_rights.c.task, callback_rights.c.answer)
        .where(callback_rights.c.task.in_(tasks), callback_rights.c.closed_at.is_(None))
        .where(callback_rights.c.answered_at.is_not(None))
        .order_by(callback_rights.c.answered_at.desc(), callback_rights.c.id.desc())
    )
    return {row.task: _called_back(row.answer) for row in connection.execute(query)}


class Rights:
    """A follower of the ledger: rights end with the attempt that may use them.

    waits: whether the work of a task is called back, as its type says.
    """

    def __init__(self, waits: Callable[[Connection, RowMapping], bool]) -> None:
        self._waits = waits

    def __call__(self, tx: Connection, moved: Moved) -> None:
        self.all(tx, [moved])

    def all(self, tx: Connection, moves: Sequence[Moved]) -> None:
        waits: dict[tuple[str, int], bool] = {}
        for moved in moves:
            if moved.move in _GOES_ON or (moved.data is not None and moved.data.get("reason") == _ASKED_MEANWHILE):
                continue
            kind = moved.task["type"], moved.task["type_version"]
            if kind not in waits:
                waits[kind] = self._waits(tx, moved.task)
            if waits[kind]:
                mine = (callback_rights.c.task == moved.task["id"]) & callback_rights.c.closed_at.is_(None)
                tx.execute(update(callback_rights).where(mine).values(closed_at=now()))


def _wanted(task: RowMapping) -> bool:
    return task["status"] in _OPEN and not task["cancel_requested"]


def _late(tx: Connection, right: RowMapping, body: JsonObject, late: Late) -> Late:
    """Note it in the task's history; the first time only, so that nobody can fill it."""
    if right["late_at"] is None:
        tx.execute(update(callback_rights).where(callback_rights.c.id == right["id"]).values(late_at=now()))
        result: Any = body.get("result")
        if len(text := json.dumps(result, ensure_ascii=False)) > MAX_NOTED:
            result = f"{text[:MAX_NOTED]}…"
        about = {"status": body["status"], "attempt": right["attempt"], "result": result}
        record(tx, right["task"], "callback_late", BY, note=body.get("message"), data=about)
    return late


def _called_back(answer: JsonObject) -> CalledBack:
    return CalledBack(
        succeeded=answer["status"] == "succeeded",
        result=answer.get("result"),
        judgement=answer.get("judgement"),
        message=answer.get("message"),
        error_class=ErrorClass(answer.get("class", ErrorClass.TRANSIENT)),
        code=answer.get("code"),
        retry_after=answer.get("retry_after"),
        reference=answer.get("external_reference"),
    )


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
