"""Waits for a run that goes on by itself: for its callback, and now and then looks whether it has ended without."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from board.ports import HttpError, Outcome, Success
from integrations.dify.client import Run
from integrations.dify.errors import ApiError
from integrations.dify.follow import Search


async def await_callback(
    search: Search, run_id: str, look: float, concluded: Callable[[Run], Awaitable[Outcome]]
) -> Outcome | None:
    """The run goes on by itself. Its callback is the result; its detail tells when it has ended without one.

    look: seconds until the detail is first asked for. None: Dify does not show the run.
    """
    job, client = search.job, search.client
    while search.deadline.left() > 0:
        called = await job.called_back(min(look, search.deadline.left()))
        look, run = search.pace.look, None
        try:
            if called is None:
                run = await client.run_detail(run_id)
        except HttpError:
            continue  # nothing is proven by it
        except ApiError as error:
            if error.unsure or error.status == 429:
                continue
            return None
        if run is not None and run.settled:  # its last node may just be calling
            called = await job.called_back(search.pace.first)
        if called is not None:
            outcome = called.outcome()
            return replace(outcome, reference=run_id) if isinstance(outcome, Success) else outcome
        if run is not None and run.settled:
            return await concluded(run)
    return search.still_open(run_id)
