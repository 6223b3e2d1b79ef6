"""POST /mcp: who may come in, and the SDK behind it, which is loaded when the first one does.

Loading it takes seconds and some tens of megabytes, and most boards never need it; where it is not installed
(`pip install 'ai-task-board[mcp]'`) the address says so.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response
from starlette.types import Receive, Scope, Send

from board.api.deps import in_thread
from board.api.errors import ApiError
from board.api.strict import actor_of
from board.rooms import Board

log = logging.getLogger(__name__)
router = APIRouter(tags=["tools for agents"])

Handle = Callable[[Scope, Receive, Send], Awaitable[None]]
# No other machine can be meant by these, so a name that was bent to this machine cannot pass as one of them.
_OWN = ("127.0.0.1", "localhost", "[::1]")


class McpDoor:
    """One per application, in its event loop."""

    def __init__(self, board: Board) -> None:
        self.hosts = allowed_hosts(board.settings.public_url, board.settings.mcp_hosts)
        self._board = board
        self._running: asyncio.Task[None] | None = None
        self._handle: asyncio.Future[Handle | None] | None = None

    async def handle(self) -> Handle | None:
        """What answers requests; None where the SDK is not installed."""
        if self._handle is None:
            self._handle = asyncio.get_running_loop().create_future()
            self._running = asyncio.create_task(self._run(self._handle))
        return await asyncio.shield(self._handle)

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running

    async def _run(self, handle: asyncio.Future[Handle | None]) -> None:
        try:
            manager = await in_thread(self._load)
        except ImportError:
            log.warning("MCP was asked for and is not installed")
            handle.set_result(None)
            return
        except Exception as error:
            self._handle = None  # the next request tries again
            handle.set_exception(error)
            return
        async with manager.run():
            handle.set_result(manager.handle_request)
            await asyncio.get_running_loop().create_future()  # until it is cancelled

    def _load(self) -> Any:
        from board.tools.mcp_server import manager_for

        return manager_for(self._board)


class _Handed(Response):
    """An answer that the SDK gives itself."""

    def __init__(self, handle: Handle) -> None:
        super().__init__()
        self._answer = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope, receive, send)


@router.post("/mcp")
async def mcp(request: Request) -> Response:
    """The tools for agents by the Model Context Protocol (streamable HTTP), with the rights of the key."""
    door: McpDoor = request.app.state.mcp
    _check_hosts(request, door.hosts)
    try:
        request.state.actor = await in_thread(lambda: actor_of(request))
    except ApiError as error:
        error.headers = {"WWW-Authenticate": "Bearer"}
        raise
    handle = await door.handle()
    if handle is None:
        raise ApiError(
            501,
            "mcp_not_installed",
            "MCP is not installed on this board. Install it with `pip install 'ai-task-board[mcp]'`, then start the "
            "board again.",
        )
    return _Handed(handle)


def _check_hosts(request: Request, hosts: Collection[str]) -> None:
    """Refuse names that were bent to this machine (DNS rebinding), and pages of other hosts. Raises ApiError.

    hosts: as `allowed_hosts` gives them.
    """
    asked = {"Host": request.headers.get("host", "")}
    if origin := request.headers.get("origin"):
        asked["Origin"] = urlsplit(origin).netloc
    for header, host in asked.items():
        if not {host.lower(), f"{_name(host.lower())}:*"} & set(hosts):
            raise ApiError(
                421 if header == "Host" else 403,
                "host_not_allowed",
                f"MCP does not answer requests whose {header} is “{host[:200]}”. Use the address in BOARD_PUBLIC_URL, "
                "or name the host in BOARD_MCP_HOSTS.",
            )


def allowed_hosts(public_url: str, named: Sequence[str]) -> frozenset[str]:
    """The hosts that are answered, in small letters; `name:*` stands for the name with any port, or none.

    Those of this machine and of the public address with any port; a named one with a port with that port only.
    """
    public = urlsplit(public_url.lower()).netloc.rpartition("@")[2]
    return frozenset(
        host if host != _name(host) else f"{host}:*" for host in (*_OWN, _name(public), *(it.lower() for it in named))
    )


def _name(host: str) -> str:
    """Without the port."""
    return re.sub(r":\d*$", "", host) if host.count(":") == 1 or "]:" in host else host
