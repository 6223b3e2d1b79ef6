"""The verbs as tools of the Model Context Protocol, by the official SDK. Imported only where somebody asks for it.

Every request stands alone: no session is kept, so any process of the board answers any of them.
"""

from __future__ import annotations

import json
import logging
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from board.access.rights import Actor
from board.api.errors import EXPECTED, ApiError, field_error, translate
from board.rooms import Board
from board.tasks.text import BadJson, parse
from board.tools.document import ABOUT
from board.tools.refusals import readable
from board.tools.verb import Verb, call
from board.tools.verbs import BY_NAME, VERBS

log = logging.getLogger(__name__)

CHANNEL = "mcp"


def manager_for(board: Board) -> StreamableHTTPSessionManager:
    """What answers requests once its `run()` is entered. Hosts and keys are checked before, by board.tools.mcp_door."""
    logging.getLogger("mcp").setLevel(logging.WARNING)  # it tells of every request
    server = Server(
        "ai-task-board",
        version=version("ai-task-board"),
        title="AI Task Board",
        instructions=ABOUT,
        on_list_tools=_list_tools,
        on_call_tool=Caller(board),
    )
    return StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=True,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=board.settings.max_json,
    )


async def _list_tools(context: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[_tool(verb) for verb in VERBS])


def _tool(verb: Verb) -> types.Tool:
    return types.Tool(
        name=verb.name,
        title=verb.title,
        description=verb.about,
        input_schema={
            "type": "object",
            "properties": {it.name: it.schema for it in verb.arguments},
            "required": [it.name for it in verb.arguments if it.required],
            "additionalProperties": False,
        },
        annotations=types.ToolAnnotations(
            read_only_hint=verb.only_reads, destructive_hint=False, open_world_hint=False
        ),
    )


class Caller:
    """Carries a tool call out with the rights of the request's key."""

    def __init__(self, board: Board) -> None:
        self._board = board

    async def __call__(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        actor = context.request.state.actor
        assert isinstance(actor, Actor)
        verb = BY_NAME.get(params.name)
        if verb is None:
            return _refused(f"There is no tool “{params.name[:100]}”; there are: {', '.join(BY_NAME)}.")
        try:
            reply = await call(self._board, actor, verb, _at_the_door(params.arguments), CHANNEL)
        except EXPECTED as error:
            return _refused(readable(translate(error)).message)
        except Exception:
            log.exception("the tool %s failed", verb.name)
            return _refused("Something went wrong on the board; tell your people. Its log has the details.")
        text = json.dumps(reply.body, ensure_ascii=False)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=reply.body)


def _at_the_door(arguments: dict[str, Any] | None) -> Any:
    """The arguments by the rules of every other body: the SDK has read them, and takes what could not be kept."""
    try:
        return parse(json.dumps(arguments or {}).encode())
    except BadJson as error:
        raise field_error(error.path, f"{error.path} {error}.", "invalid_text") from error
    except (ValueError, RecursionError) as error:  # digits without end, or nesting
        raise ApiError(422, "invalid_json", "The arguments cannot be read; send plain, smaller values.") from error


def _refused(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)
