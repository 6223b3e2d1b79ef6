"""What tells first how a run ended: the looks at it, or, where it is expected to call back, its callback."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from board.ports import CalledBack, Failure, NotStarted, Outcome, Success, UnknownOutcome
from integrations.dify.client import Run
from integrations.dify.follow import Search


async def first_word(search: Search, run_id: str | None) -> Run | NotStarted | Failure | UnknownOutcome | CalledBack:
    """As Search.outcome, or the callback. The looks go on beside, so a run that ends without one is noticed."""
    if search.job.wait != "callback":
        return await search.outcome(run_id)
    looking = asyncio.create_task(search.outcome(run_id))
    calling = asyncio.create_task(search.job.called_back(search.deadline.left()))
    try:
        await asyncio.wait([looking, calling], return_when=asyncio.FIRST_COMPLETED)
        if looking.done():  # the run's last node may just be calling
            await asyncio.wait([calling], timeout=search.pace.first)
        called = calling.result() if calling.done() else None
        return await looking if called is None else called
    finally:
        looking.cancel()
        calling.cancel()
        await asyncio.gather(looking, calling, return_exceptions=True)


def outcome_of_call(called: CalledBack, run_id: str | None) -> Outcome:
    """The run's own id stays the reference of what was done, as it does for every run."""
    outcome = called.outcome()
    return replace(outcome, reference=run_id or outcome.reference) if isinstance(outcome, Success) else outcome
