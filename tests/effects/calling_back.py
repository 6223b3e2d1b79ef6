"""A flow that calls back."""

from typing import Any

from sqlalchemy import select

from board.effects.incoming import Recorded
from board.effects.models import callback_rights
from tests.rig.calling import Caller
from tests.rig.working import OpenWorking, WorkingBoard


def called(board: WorkingBoard, token: str, status: str = "succeeded", **body: Any) -> Recorded:
    return board.board.incoming.take(token, {"status": status, **body})


def rights(board: WorkingBoard) -> list[Any]:
    with board.board.db.read() as connection:
        return list(connection.execute(select(callback_rights).order_by(callback_rights.c.id)).mappings())


def opened(working: OpenWorking, caller: Caller, **parts: Any) -> WorkingBoard:
    settings = {name: parts.pop(name) for name in ("concurrency", "lease") if name in parts}
    board = working(caller, **settings)
    board.type("flow", use="caller", **parts)
    return board
