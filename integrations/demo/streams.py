"""Turns a run's events into the bytes of one event stream, cut where its plan says."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from integrations.demo.faults import Plan
from integrations.demo.runs import SPOKEN, Run
from integrations.demo.wire import CUT, PING, JsonObject, frame


@dataclass(slots=True)
class Pace:
    """The stand-in's times in seconds. Dify's own: ping_every 10, idle_limit 300 (no event for that long: EOF)."""

    run: float = 0.2  # working time of a run without a plan of its own
    ping_every: float = 10.0
    idle_limit: float = 300.0


@dataclass(slots=True)
class _Clock:
    """When the next ping is due and when the server gives up waiting for an event."""

    pace: Pace
    pinged: float
    heard: float

    def wait(self, now: float) -> float:
        return max(0.0, min(self.pinged + self.pace.ping_every, self.heard + self.pace.idle_limit) - now)


def follow(run: Run, pace: Pace, skip: int, past_pause: bool) -> AsyncGenerator[bytes, None]:
    """The honest stream of a run from its event number `skip` on; past_pause: to the true end, over any pause."""
    return _events(run, pace, skip, "finish" if past_pause else "end")


async def answer(run: Run | None, plan: Plan, pace: Pace) -> AsyncGenerator[bytes, None]:
    """The stream that answers POST /workflows/run, with all that the plan does to it."""
    if plan.raw is not None:
        async for piece in _raw(plan):
            yield piece
        return
    if run is None or plan.until == "nothing":
        yield PING
    else:
        async for piece in _events(run, pace, 0, plan.until):
            yield piece
    if plan.until == "end":
        return
    if plan.event_status is not None:
        yield frame(_error_event(run, plan))
    if plan.ending == "hold":
        async for piece in _silence(pace):
            yield piece
    if plan.ending == "stall":
        await asyncio.Event().wait()
    if plan.ending == "cut":
        yield CUT


async def _events(run: Run, pace: Pace, sent: int, until: str) -> AsyncGenerator[bytes, None]:
    """Starts with a ping, as Dify does. `until` started: to workflow_started; text: to the second piece of
    text; end: to the last event there is; finish: not ended by a pause."""
    now = asyncio.get_running_loop().time
    yield PING
    clock = _Clock(pace, now(), now())
    texts = 0
    while True:
        while sent < len(run.events):
            event = run.events[sent]
            sent += 1
            last = event["event"] in run.last_events
            if last and until in ("started", "text"):
                return
            clock.heard = now()
            yield frame(event)
            texts += event["event"] == SPOKEN.get(run.app.mode, "message")
            cut_here = until == "started" or (until == "text" and texts == 2)
            resumed = sent < len(run.events) or until == "finish"
            if (last and event["event"] != "workflow_paused") or (last and not resumed) or cut_here:
                return
        bell = run.bell
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(bell.wait(), clock.wait(now()))
        if now() - clock.heard >= pace.idle_limit:
            return
        if now() - clock.pinged >= pace.ping_every:
            clock.pinged = now()
            yield PING


async def _silence(pace: Pace) -> AsyncGenerator[bytes, None]:
    """Pings and nothing else until the idle limit."""
    now = asyncio.get_running_loop().time
    end = now() + pace.idle_limit
    while now() < end:
        await asyncio.sleep(min(pace.ping_every, max(0.0, end - now())))
        yield PING


async def _raw(plan: Plan) -> AsyncGenerator[bytes, None]:
    data = base64.b64decode(plan.raw or "")
    sizes = list(plan.sizes)
    while data:
        size = sizes.pop(0) if sizes else plan.every or len(data)
        piece, data = data[:size], data[size:]
        yield piece
        await asyncio.sleep(plan.pause)


def _error_event(run: Run | None, plan: Plan) -> JsonObject:
    event: JsonObject = {"event": "error", "message": plan.message, "status": plan.event_status}
    if plan.code:
        event["code"] = plan.code
    if plan.ids and run is not None:
        event |= {"task_id": run.task_id, "workflow_run_id": run.id}
    return event
