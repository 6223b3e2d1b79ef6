"""/callbacks/{token}: a flow that was started and not waited for hands in its result. The token is the right."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from board.api.claims import JudgementIn
from board.api.deps import TheBoard, in_thread
from board.api.strict import StrictRoute, ok
from board.effects import incoming
from board.ports import ErrorClass
from board.tasks.view import time


class TokenRoute(StrictRoute):
    """A route without a key: of an address that nobody knows nothing more is read."""

    @staticmethod
    async def let_in(request: Request) -> None:
        def find() -> None:
            with request.app.state.board.db.read() as connection:
                incoming.find(connection, request.path_params["token"])

        await in_thread(find)


router = APIRouter(prefix="/callbacks", tags=["callbacks"], route_class=TokenRoute)


class CallbackIn(BaseModel):
    """How it went. result, judgement, external_reference: of a success. class, code, retry_after (seconds): of a
    failure. percent (0 to 100): of progress."""

    model_config = ConfigDict(extra="forbid")

    status: Literal["succeeded", "failed", "progress"]
    result: Any = None
    judgement: JudgementIn | None = None
    external_reference: Annotated[str | None, Field(max_length=1000)] = None
    message: Annotated[str | None, Field(max_length=10_000)] = None
    class_: Annotated[ErrorClass | None, Field(alias="class")] = None
    code: Annotated[str | None, Field(max_length=200)] = None
    retry_after: Annotated[float | None, Field(ge=0)] = None
    percent: Annotated[float | None, Field(ge=0, le=100)] = None


@router.post("/{token}")
def called_back(token: str, body: CallbackIn, board: TheBoard) -> JSONResponse:
    """Hand in the result of work that the board has started, once; or say how far it is."""
    said = body.model_dump(mode="json", by_alias=True, exclude_unset=True)
    taken = board.incoming.take(token, {name: value for name, value in said.items() if value is not None})
    answer = {
        "task_id": taken.task_id,
        "attempt": taken.attempt,
        **{name: taken.answer.get(name) for name in ("status", "result", "message")},
        "recorded_at": time(taken.at),
    }
    return ok(answer | ({"repeated": True} if taken.repeated else {}))
