"""/claims: n8n, or any program, as a worker. It takes tasks, says that it is alive, and hands in how they went."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from board.api.deps import TheBoard, TheWorker, in_thread
from board.api.strict import StrictRoute, ok
from board.ports import ErrorClass
from board.rooms import Board
from board.tasks import view
from board.worker.claims import Claimed, Settled, Standing
from board.worker.handing_out import MAX_WORKER, HandedOut, WorkWanted

router = APIRouter(prefix="/claims", tags=["claims"], route_class=StrictRoute)

MAX_LIMIT = 50
LONGEST_LEASE = 3600  # seconds; a worker that is silent for longer than an hour is better taken for dead
# What becomes ready by time alone, and what is not heard of, is found within this time, seconds.
PAUSE = 1.0


def _worker(name: str) -> str:
    if not name.isprintable() or name != name.strip():
        raise ValueError("use printable characters, without spaces at the ends")
    return name


Lease = Annotated[float, Field(ge=1, le=LONGEST_LEASE)]
Names = Annotated[list[str], Field(min_length=1, max_length=100)]
Lanes = Annotated[list[Literal["P0", "P1", "P2", "P3"]], Field(min_length=1, max_length=4)]


class ClaimIn(BaseModel):
    """types, lanes left out: all. lease: seconds."""

    model_config = ConfigDict(extra="forbid")

    worker: Annotated[str, Field(min_length=1, max_length=MAX_WORKER), AfterValidator(_worker)]
    types: Names | None = None
    lanes: Lanes | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = 1
    lease: Lease = 60.0


class OnClaim(BaseModel):
    """lease_token: the one that came with the claim; may be sent along and is checked then."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    lease_token: int | None = None


class HeartbeatIn(OnClaim):
    """lease: seconds from now on; left out, as long as before."""

    lease: Lease | None = None


class ProgressIn(OnClaim):
    percent: Annotated[float | None, Field(ge=0, le=100)] = None
    message: Annotated[str | None, Field(max_length=1000)] = None
    text: Annotated[str | None, Field(max_length=100_000)] = None


class JudgementIn(BaseModel):
    """What the AI thinks of it. The names are fixed; values are read as leniently as any model's output."""

    model_config = ConfigDict(extra="forbid")

    summary: Any = None
    advice: Any = None
    verdict: Any = None
    confidence: Any = None
    reasons: Any = None
    risks: Any = None


class CompleteIn(OnClaim):
    """review: `always` asks a person in any case; `never` skips the type's rules and sample, not `when: always`."""

    result: Any
    judgement: JudgementIn | None = None
    review: Literal["auto", "always", "never"] = "auto"


class FailIn(OnClaim):
    """retry_after: seconds that the other side asked to wait. code: what the type's `retry.rules` may match."""

    message: Annotated[str, Field(min_length=1)]
    class_: Annotated[ErrorClass, Field(alias="class")] = ErrorClass.TRANSIENT
    retry_after: Annotated[float | None, Field(ge=0)] = None
    code: Annotated[str | None, Field(max_length=200)] = None


@router.post("")
async def claim(
    request: Request,
    body: ClaimIn,
    board: TheBoard,
    actor: TheWorker,
    wait: Annotated[float | None, Query(ge=0, le=60, description="seconds to wait for work, at most 60")] = None,
) -> JSONResponse:
    """Take up to `limit` tasks that wait for outside workers; an empty list when there is none."""
    lanes = None if body.lanes is None else sorted({int(name[1]) for name in body.lanes})
    wanted = WorkWanted(body.worker, body.limit, body.lease, body.types, lanes)
    end = time.monotonic() + (wait or 0)
    with board.claims.arrivals.listen() as arrived:
        while True:
            arrived.clear()
            taken = await in_thread(lambda: board.claims.take(actor, wanted))
            left = end - time.monotonic()
            if taken or left <= 0:
                break
            with suppress(TimeoutError):
                await asyncio.wait_for(arrived.wait(), min(left, PAUSE))
            # Nobody may be there any more to take an answer; then no task may be taken either.
            if board.stopping.is_set() or await request.is_disconnected():
                break
    return ok({"data": await in_thread(lambda: _handed_out(board, taken))})


@router.post("/{claim_id}/heartbeat")
def heartbeat(claim_id: str, board: TheBoard, actor: TheWorker, body: HeartbeatIn | None = None) -> JSONResponse:
    """Still at work: the lease begins anew. `cancel_requested: true` asks to stop."""
    asked = body or HeartbeatIn()
    return _standing(board.claims.heartbeat(_claimed(actor, claim_id, asked), asked.lease))


@router.post("/{claim_id}/progress")
def progress(claim_id: str, body: ProgressIn, board: TheBoard, actor: TheWorker) -> JSONResponse:
    """How far it is. The last one is kept with the attempt; the lease stays as it is."""
    given = body.model_dump(exclude={"lease_token"}, exclude_none=True)
    return _standing(board.claims.progress(_claimed(actor, claim_id, body), given))


@router.post("/{claim_id}/complete")
def complete(claim_id: str, body: CompleteIn, board: TheBoard, actor: TheWorker) -> JSONResponse:
    """Hand in the result; answered with the task as it stands then. The same again is answered the same."""
    judgement = body.judgement.model_dump(exclude_none=True) if body.judgement else None
    claimed = _claimed(actor, claim_id, body)
    return _settled(board, lambda: board.claims.complete(claimed, body.result, judgement, body.review), result=True)


@router.post("/{claim_id}/fail")
def fail(claim_id: str, body: FailIn, board: TheBoard, actor: TheWorker) -> JSONResponse:
    """It did not work. The class and the type's rules say whether it is tried again."""
    claimed = _claimed(actor, claim_id, body)
    return _settled(board, lambda: board.claims.fail(claimed, body.message, body.class_, body.code, body.retry_after))


@router.post("/{claim_id}/release")
def release(claim_id: str, board: TheBoard, actor: TheWorker, body: OnClaim | None = None) -> JSONResponse:
    """Give the task back unworked: it waits again, and no retry is spent."""
    claimed = _claimed(actor, claim_id, body or OnClaim())
    return _settled(board, lambda: board.claims.release(claimed))


def _claimed(actor: TheWorker, claim_id: str, body: OnClaim) -> Claimed:
    return Claimed(actor, claim_id, body.lease_token)


def _handed_out(board: Board, taken: list[HandedOut]) -> list[dict[str, Any]]:
    if not taken:
        return []
    with board.db.read() as connection:
        documents = board.task_documents(connection, [it.task for it in taken])
    return [
        {
            "claim_id": it.claim_id,
            "lease_token": it.task["lease_token"],
            "lease_until": view.time(it.task["lease_until"]),
            "inputs": it.inputs,
            "instruction": it.instruction,
            "former_output": it.former_output,
            "task": document,
        }
        for it, document in zip(taken, documents, strict=True)
    ]


def _standing(it: Standing) -> JSONResponse:
    return ok(
        {
            "claim_id": it.claim_id,
            "lease_token": it.lease_token,
            "lease_until": view.time(it.lease_until),
            "cancel_requested": it.cancel_requested,
        }
    )


def _settled(board: Board, call: Callable[[], Settled], *, result: bool = False) -> JSONResponse:
    """The task as it stands. result: with what this very claim handed in, whatever came of the task since."""
    settled = call()
    with board.db.read() as connection:
        document = board.task_document(connection, settled.task)
    if result:
        document["result"] = settled.output
    return ok(document | ({"repeated": True} if settled.repeated else {}))
