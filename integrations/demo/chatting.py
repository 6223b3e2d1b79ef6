"""Chat and completion: the calls that start an answer, stop it, and look it up in the history."""

from __future__ import annotations

import uuid

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from integrations.demo import engine
from integrations.demo.standin import StandIn, enter, enter_with_body
from integrations.demo.starting import begin, check_version, user_of
from integrations.demo.wire import DifyError, JsonObject, invalid_param, json_answer, not_found

CHATS = ("chat", "agent-chat", "advanced-chat", "agent")


async def chat(request: Request) -> Response:
    standin, app, body = await enter_with_body(request)
    if app.mode not in CHATS:
        raise _not_chat()
    query = body.get("query")
    if not isinstance(query, str) or not query:
        raise invalid_param("query is required")
    if (body.get("response_mode") or "blocking") == "blocking":
        if app.mode == "agent-chat":
            raise invalid_param("Agent Chat App does not support blocking mode")
        if app.mode == "agent":
            raise DifyError(400, "bad_request", "Agent App does not support blocking mode")
    check_version(app, body.get("workflow_id"))
    conversation = _conversation(standin, app.key, body)
    return await begin(request, standin, app, body, query, conversation)


async def completion(request: Request) -> Response:
    standin, app, body = await enter_with_body(request)
    if app.mode != "completion":
        raise DifyError(400, "app_unavailable", "App unavailable, please check your app configurations.")
    return await begin(request, standin, app, body, str(body.get("query") or ""))


async def stop(request: Request) -> Response:
    """Always success; nothing happens unless the user is the one who asked."""
    standin, _, body = await enter_with_body(request, "stop")
    user = user_of(body)
    run = standin.book.by_task(request.path_params["task_id"])
    if run is not None and run.user == user:
        engine.stop(run)
    return json_answer({"result": "success"})


async def conversations(request: Request) -> Response:
    """The conversations of a user, the last used first."""
    standin, app = await enter(request, "messages")
    if app.mode not in CHATS:
        raise _not_chat()
    runs = standin.book.talks(app, request.query_params.get("user", ""))
    ids = list(dict.fromkeys(run.conversation_id for run in runs))
    limit = int(request.query_params.get("limit", "20"))
    data = [{"id": it, "name": "New conversation", "inputs": {}, "status": "normal"} for it in ids[:limit]]
    return json_answer({"limit": limit, "has_more": len(ids) > limit, "data": data})


async def messages(request: Request) -> Response:
    """The messages of one conversation of a user, oldest first."""
    standin, app = await enter(request, "messages")
    if app.mode not in CHATS:
        raise _not_chat()
    query = request.query_params
    runs = [
        run
        for run in standin.book.talks(app, query.get("user", ""))
        if run.conversation_id == query.get("conversation_id")
    ]
    if not runs:
        raise not_found("Conversation Not Exists.")
    limit = int(query.get("limit", "20"))
    data = [run.message() for run in reversed(runs[:limit])]
    return json_answer({"limit": limit, "has_more": len(runs) > limit, "data": data})


def _conversation(standin: StandIn, key: str, body: JsonObject) -> str:
    """The conversation to go on with, or a new one."""
    wanted = body.get("conversation_id")
    if not wanted:
        return str(uuid.uuid4())
    known = {run.conversation_id for run in standin.book.runs if run.app.key == key and run.user == body.get("user")}
    if wanted not in known:
        raise not_found("Conversation Not Exists.")
    return str(wanted)


def _not_chat() -> DifyError:
    return DifyError(400, "not_chat_app", "Please check if your app mode matches the right API route.")


ROUTES = [
    Route("/chat-messages", chat, methods=["POST"]),
    Route("/chat-messages/{task_id}/stop", stop, methods=["POST"]),
    Route("/completion-messages", completion, methods=["POST"]),
    Route("/completion-messages/{task_id}/stop", stop, methods=["POST"]),
    Route("/conversations", conversations),
    Route("/messages", messages),
]
