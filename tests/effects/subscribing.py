"""Subscriptions in tests: made as the API makes them, and what they were told."""

import json
from typing import Any

from sqlalchemy import RowMapping, select

from board.access.rights import Actor, key_actor
from board.effects import subscriptions
from board.effects.models import announcements, operations
from board.effects.operations import SUBSCRIPTION
from board.effects.subscriptions import Event, Wish
from tests.rig.receiver import Received
from tests.rig.working import WorkingBoard

READER = key_actor("n8n", ["read"])
EVERYTHING = tuple(Event)


def subscribe(board: WorkingBoard, url: str, *events: Event, actor: Actor = READER, **more: Any) -> str:
    """The id of the subscription."""
    heart = board.board
    with heart.db.write() as tx:
        wish = Wish(url, events or EVERYTHING, **more)
        row, _ = subscriptions.subscribe(tx, wish, actor, heart.vault, heart.check_url)
    return str(row["id"])


def unsubscribe(board: WorkingBoard, subscription: str) -> None:
    with board.board.db.write() as tx:
        subscriptions.remove(tx, subscription, READER)


def said(request: Received) -> tuple[str, str | None, int]:
    """Event, status of its task, and number of one call."""
    body = json.loads(request.body)
    return body["event"], body["task"]["status"] if body["task"] else None, body["seq"]


def rows(board: WorkingBoard) -> list[RowMapping]:
    """Everything that was written out for subscriptions, in order."""
    with board.board.db.read() as connection:
        query = select(operations).where(operations.c.kind == SUBSCRIPTION).order_by(operations.c.id)
        return list(connection.execute(query).mappings())


def noted(board: WorkingBoard) -> list[RowMapping]:
    with board.board.db.read() as connection:
        return list(connection.execute(select(announcements).order_by(announcements.c.id)).mappings())
