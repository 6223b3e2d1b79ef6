"""Watches the events of a run that an earlier attempt began, and gives a person's answer to its form meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from board.ports import CANCELLED, FormAnswer, HttpError, JsonObject
from integrations.dify.client import Client, Run
from integrations.dify.errors import ApiError
from integrations.dify.follow import Search
from integrations.dify.human import LOOK_AGAIN, give, is_form
from integrations.dify.live import CutShort, LiveRun

Stop = Callable[[Client, LiveRun, str], Awaitable[None]]


async def watch_again(
    search: Search, live: LiveRun, run_id: str, stop: Stop, answer: FormAnswer | None = None
) -> Run | None:
    """The settled run; None where it cannot be watched. Raises FormRefused.

    stop: ends it where the task is cancelled.
    """

    async def give_answer(data: JsonObject) -> bool:
        if answer is None or answer.action == LOOK_AGAIN or not is_form(data, answer.form_id):
            return False
        live.forms = [data]  # should it be refused
        try:
            await give(search.client, search.user, data, answer, search.job.files)
        except (ApiError, HttpError):
            live.answered = True  # perhaps: given again by the next attempt, it does no harm
            raise
        live.forms = []
        return True

    live.on_form, live.run_id = give_answer, run_id
    try:
        async with asyncio.timeout_at(search.deadline.at):
            async with search.client.events(run_id, search.user, past_pause=answer is not None) as events:
                return await live.watch(events)
    except asyncio.CancelledError as error:
        if CANCELLED in error.args and live.task_id:
            await stop(search.client, live, search.user)
        raise
    except (ApiError, HttpError, CutShort, TimeoutError):
        return None
