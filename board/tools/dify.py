"""/integrations/dify: the tool document, and the flat endpoints behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from board.api.deps import TheActor, TheBoard
from board.api.errors import EXPECTED, error_answer, translate
from board.api.strict import StrictRoute, ok
from board.tools.document import PREFIX, document, operation
from board.tools.refusals import readable
from board.tools.verb import Verb, call
from board.tools.verbs import VERBS

CHANNEL = "dify"

router = APIRouter(prefix=PREFIX, tags=["tools for agents"])


class ToolRoute(StrictRoute):
    """A route whose refusals a model gets to read."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        strict = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await strict(request)
            except EXPECTED as error:
                return error_answer(request, readable(translate(error)))

        return answer


@router.get("/openapi.json")
def tool_document(board: TheBoard) -> JSONResponse:
    """The document that Dify imports as a custom tool. It holds no secret and needs no key."""
    return JSONResponse(document(board.settings.public_url))


def _endpoint(verb: Verb) -> Callable[..., Awaitable[JSONResponse]]:
    async def endpoint(request: Request, board: TheBoard, actor: TheActor) -> JSONResponse:
        raw: Any = await request.json() if (await request.body()).strip() else {}
        reply = await call(board, actor, verb, raw, CHANNEL)
        return ok(reply.body, 201 if reply.created else 200)

    return endpoint


_tools = APIRouter(route_class=ToolRoute)
for _verb in VERBS:
    _described = operation(_verb)
    _tools.add_api_route(
        f"/{_verb.name}",
        _endpoint(_verb),
        methods=["POST"],
        name=_verb.name,
        summary=_verb.title,
        description=_verb.about,
        operation_id=_verb.name,
        openapi_extra={"requestBody": _described["requestBody"]},
    )
router.include_router(_tools)
