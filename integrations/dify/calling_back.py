"""What tells first how a run ended: the looks at it, or, where it is expected to call back, its callback."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from board.ports import CalledBack, Failure, Job, NotStarted, Outcome, Success, UnknownOutcome
from integrations.dify.client import Run
from integrations.dify.follow import Search
from integrations.dify.outcomes import read_outputs


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


def outcome_of_call(called: CalledBack, job: Job, run_id: str | None) -> Outcome:
    """What came is read as a run's outputs are: a model's text may hold the JSON that was asked for, or be empty.

    The run's own id stays the reference of what was done, as it does for every run.
    """
    if not called.succeeded:
        return called.outcome()
    read = read_outputs(called.result, job.output_schema)
    if isinstance(read, Success):
        return replace(read, judgement=called.judgement, reference=run_id or called.reference)
    return read
