"""Outside workers: programs that claim tasks over HTTP, do the work where they are, and hand in how it went.

A claim is one attempt like any other: it has a lease and a token, is swept when it goes silent, and ends through
`Ending`, so that review rules, retries and output schemas hold for work from outside too. A claim belongs to the key
that made it; for every other key it does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, RowMapping, select, update

from board.access.rights import Actor
from board.db.clock import read_now
from board.db.engine import after_commit
from board.effects import outside
from board.ports import Cause, ErrorClass, Failure, Json, JsonObject, Success, UnknownOutcome
from board.review.policy import Wish
from board.signals.signal import Progress, Text
from board.tasks.content import payload_hash
from board.tasks.history import By, record
from board.tasks.ledger import Lease, Moved
from board.tasks.models import attempts
from board.tasks.read import by_internal_id
from board.tasks.states import Status
from board.tasks.view import time
from board.worker.handing_out import HandingOut
from board.worker.models import claims

_CAUSES = {ErrorClass.QUOTA: Cause.RATE_LIMIT}


class NoSuchClaim(Exception):
    """There is none, or another key made it."""

    def __init__(self, claim_id: str) -> None:
        super().__init__(f"There is no claim “{claim_id[:40]}” of this key.")


class ClaimLost(Exception):
    """The claim does not hold its task any more.

    reason: lease_expired, cancelled, completed, failed, released, or other_token (the one that was sent along).
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Standing:
    """A claim that holds its task."""

    claim_id: str
    lease_token: int
    lease_until: datetime
    cancel_requested: bool


@dataclass(frozen=True, slots=True)
class Settled:
    """How a call that ends a claim was answered. output: the result as it was taken; repeated: it came before."""

    task: RowMapping
    output: Json
    repeated: bool


@dataclass(frozen=True, slots=True)
class Claimed:
    """One call about a claim. token: the lease token, where the caller sends it along."""

    actor: Actor
    claim_id: str
    token: int | None = None


@dataclass(frozen=True, slots=True)
class _Held:
    claim: RowMapping
    task: RowMapping  # locked
    lease: Lease
    by: By
    lost: ClaimLost | None


class Claims(HandingOut):
    """Handing out is in board.worker.handing_out; here a claim is kept, and settled."""

    # -- while it runs --------------------------------------------------------------------------------------------

    def heartbeat(self, claimed: Claimed, lease: float | None) -> Standing:
        """Prolong the lease, from now on by `lease` seconds where that is given. Raises NoSuchClaim, ClaimLost."""
        with self._db.write() as tx:
            held = self._holding(tx, claimed)
            seconds = lease or held.claim["lease"]
            tx.execute(update(claims).where(claims.c.id == held.claim["id"]).values(lease=seconds))
            self._ledger.renew(tx, held.by.identity, [held.lease], seconds)
            return _standing(held, by_internal_id(tx, held.lease.task))

    def progress(self, claimed: Claimed, given: JsonObject) -> Standing:
        """Keep how far it is, over what was said before. Renews nothing. Raises NoSuchClaim, ClaimLost.

        given: percent (0 to 100), message, text (the next piece of what a model writes). Kept are the last of each, and
        how many characters of text came before (`offset`).
        """
        with self._db.write() as tx:
            held = self._holding(tx, claimed)
            this = (attempts.c.task == held.lease.task) & (attempts.c.number == held.lease.token)
            former = tx.execute(select(attempts.c.progress).where(this)).scalar() or {}
            said = former | given | {"at": time(read_now(tx))}
            if "text" in given:
                said["offset"] = former.get("offset", 0) + len(former.get("text", ""))
            tx.execute(update(attempts).where(this).values(progress=said))
            after_commit(tx, partial(self._pass_on, held.lease, given, said))
            return _standing(held, held.task)

    def _pass_on(self, lease: Lease, given: JsonObject, said: JsonObject) -> None:
        if given.keys() & {"percent", "message"}:
            self._tell(Progress.told(lease, said.get("percent"), said.get("message")))
        if given.get("text"):
            self._tell(Text(lease.task, lease.token, said["offset"], said["text"]))

    # -- the end --------------------------------------------------------------------------------------------------

    def complete(self, claimed: Claimed, result: Json, judgement: JsonObject | None, review: Wish) -> Settled:
        """Hand in the result. Raises NoSuchClaim, ClaimLost (also when the cancellation was asked meanwhile)."""
        outcome = Success(result=result, judgement=judgement)
        content = {"result": result, "judgement": judgement, "review": review}

        def end(tx: Connection, held: _Held) -> Moved | None:
            return self._ending.conclude(tx, held.task, held.lease, held.by, outcome, review=review)

        return self._settle(claimed, "completed", content, end, counts_when_stopped=False)

    def fail(
        self, claimed: Claimed, message: str, error_class: ErrorClass, code: str | None, retry_after: float | None
    ) -> Settled:
        """Say that the attempt failed; the type's rules say what follows. Raises NoSuchClaim, ClaimLost."""
        cause = _CAUSES.get(error_class, Cause.UNKNOWN)
        failure = Failure(error_class, cause, message, code=code, retry_after=retry_after)
        content = {"message": message, "class": error_class, "code": code, "retry_after": retry_after}

        def end(tx: Connection, held: _Held) -> Moved | None:
            if found := outside.left_open(tx, held.task):
                return self._ask_about(tx, held, found, f"The worker failed: {message}")
            return self._ending.conclude(tx, held.task, held.lease, held.by, failure)

        return self._settle(claimed, "failed", content, end)

    def release(self, claimed: Claimed) -> Settled:
        """Give the task back unworked: no retry is spent. Raises NoSuchClaim, ClaimLost."""

        def end(tx: Connection, held: _Held) -> Moved | None:
            if found := outside.left_open(tx, held.task):
                return self._ask_about(tx, held, found, "The worker gave it back.")
            return self._ending.hand_back(tx, held.lease, held.by, "The worker gave it back.")

        return self._settle(claimed, "released", {}, end)

    def _ask_about(self, tx: Connection, held: _Held, found: Sequence[RowMapping], why: str) -> Moved | None:
        """Ask a person about calls that were announced and not closed: only the program could tell, and it does not."""
        message = f"{why} What became of its call to {found[0]['target']} was not said."
        outside.lose(tx, found[1:], held.by, message)
        unknown = UnknownOutcome(message)
        return self._ending.conclude(tx, held.task, held.lease, held.by, unknown, operation=found[0]["id"])

    def _settle(
        self,
        claimed: Claimed,
        how: str,
        content: JsonObject,
        end: Callable[[Connection, _Held], Moved | None],
        *,
        counts_when_stopped: bool = True,
    ) -> Settled:
        """counts_when_stopped: whether it is a good answer when the task was stopped, as somebody had asked."""
        digest = payload_hash({"call": how, **content})
        with self._db.write() as tx:
            held = self._find(tx, claimed)
            repeated = held.claim["content_hash"] == digest
            lost = None if repeated else held.lost
            if lost is not None:
                record(tx, held.lease.task, "stale_result", held.by, note=f"A late call was refused. {lost}")
            elif not repeated:
                if end(tx, held) is None and not counts_when_stopped:
                    lost = _cancelled()
                else:
                    done = {"settled_by": how, "content_hash": digest}
                    tx.execute(update(claims).where(claims.c.id == held.claim["id"]).values(**done))
            settled = Settled(by_internal_id(tx, held.lease.task), _attempt(tx, held.lease)["output"], repeated)
        if lost is not None:
            raise lost
        return settled

    # -- whose claim, and does it still hold? -----------------------------------------------------------------------

    def _holding(self, tx: Connection, claimed: Claimed) -> _Held:
        held = self._find(tx, claimed)
        if held.lost is not None:
            raise held.lost
        return held

    def _find(self, tx: Connection, claimed: Claimed) -> _Held:
        """The claim with its task locked, so that what is read here holds until the end of the transaction.

        Raises NoSuchClaim, and ClaimLost for a lease token that is not its own.
        """
        number = int(claimed.claim_id) if claimed.claim_id.isdecimal() and len(claimed.claim_id) <= 18 else 0
        query = select(claims).where(claims.c.id == number, claims.c.owner == claimed.actor.identity)
        claim = tx.execute(query).mappings().first()
        if claim is None:
            raise NoSuchClaim(claimed.claim_id)
        task = self._ledger.lock(tx, claim["task"])
        claim = tx.execute(query).mappings().one()  # again: whoever held the lock may have settled it
        lease = Lease(claim["task"], claim["number"])
        if claimed.token is not None and claimed.token != lease.token:
            raise ClaimLost("other_token", "The lease_token is not the one of this claim.")
        by = By(claimed.actor.kind, f"{claimed.actor.name}/{claim['worker']}", "api")
        return _Held(claim, task, lease, by, lost(tx, claim, task, lease))


def _attempt(tx: Connection, lease: Lease) -> RowMapping:
    query = select(attempts).where(attempts.c.task == lease.task, attempts.c.number == lease.token)
    return tx.execute(query).mappings().one()


def _standing(held: _Held, row: RowMapping) -> Standing:
    return Standing(str(held.claim["id"]), held.lease.token, row["lease_until"], row["cancel_requested"])


def lost(tx: Connection, claim: RowMapping, task: RowMapping, lease: Lease) -> ClaimLost | None:
    """Why the claim no longer holds its task; None when it does, even if its time is over and nobody has noticed."""
    if task["lease_token"] == lease.token and task["status"] == Status.RUNNING:
        return None
    if claim["settled_by"] is not None:
        return ClaimLost(claim["settled_by"], f"This claim was {claim['settled_by']} before; it takes nothing more.")
    if _attempt(tx, lease)["outcome"] == "cancelled":
        return _cancelled()
    taken = task["lease_token"] != lease.token
    after = "another worker has taken the task" if taken else f"the task is {task['status']}"
    return ClaimLost("lease_expired", f"The lease of this claim ran out without a heartbeat, and {after}.")


def _cancelled() -> ClaimLost:
    return ClaimLost("cancelled", "The task was cancelled; nothing of this claim counts any more.")
