"""The stand-in's own switches for tests and for the curious; Dify has nothing like them."""

from __future__ import annotations

import dataclasses

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from integrations.demo.faults import FAULTS, BadFault
from integrations.demo.standin import of
from integrations.demo.wire import invalid_param, json_answer, json_body


async def runs(request: Request) -> Response:
    """GET: `{started, runs[], requests[]}`: what truly happened, oldest first."""
    standin = of(request)
    records = [run.record() for run in standin.book.runs]
    return json_answer({"started": standin.book.started, "runs": records, "requests": standin.requests})


async def show_faults(request: Request) -> Response:
    """GET: the names of all faults and what waits in the queue."""
    queue = [{"on": entry.on, "match": entry.match, "times": entry.times} for entry in of(request).faults.queue]
    return json_answer({"known": sorted(FAULTS), "queue": queue})


async def set_faults(request: Request) -> Response:
    """POST `{reset?: true, faults?: [{fault, …}], pace?: {run, ping_every, idle_limit}}`, done in that order."""
    standin = of(request)
    body = await json_body(request)
    unknown = set(body) - {"reset", "faults", "pace"}
    if unknown:
        raise invalid_param(f"Unknown field {', '.join(sorted(unknown))}; there are reset, faults and pace.")
    if body.get("reset"):
        standin.reset()
    try:
        for item in body.get("faults") or []:
            standin.faults.add({"fault": item} if isinstance(item, str) else item)
    except BadFault as error:
        raise invalid_param(str(error)) from None
    times = {entry.name for entry in dataclasses.fields(standin.pace)}
    for name, value in (body.get("pace") or {}).items():
        if name not in times or not isinstance(value, int | float):
            raise invalid_param(f"pace holds seconds as numbers under {', '.join(sorted(times))}.")
        setattr(standin.pace, name, float(value))
    return await show_faults(request)


ROUTES = [
    Route("/runs", runs),
    Route("/faults", show_faults),
    Route("/faults", set_faults, methods=["POST"]),
]
