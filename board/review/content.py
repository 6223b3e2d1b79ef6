"""What a reviewer is shown, pinned by a hash: an approval counts for this very content and no other."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping

from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue
from board.db.types import dump_json
from board.tasks.view import data_of


def consequence(connection: Connection, catalogue: Catalogue, spec: TypeSpec) -> dict[str, Any] | None:
    """What happens after approval, from the type and never from AI text: action, connection and address."""
    if spec.action is None:
        return None
    target = catalogue.open_connection(connection, spec.action.connection) if spec.action.connection else None
    return {
        "use": spec.action.use,
        "connection": spec.action.connection,
        "url": target.url if target else None,
        "idempotent": bool(target and target.options.get("idempotent")),
    }


def content_hash(
    connection: Connection, catalogue: Catalogue, task: RowMapping, data: Mapping[Any, Any] | None = None
) -> str:
    """The hash of all that the page shows and a decision is about. data: of the task, where it was read already."""
    data = data or data_of(connection, task["id"])
    spec = catalogue.version(connection, task["type"], task["type_version"]).spec
    shown = {
        "title": task["title"],
        "payload": data["payload"],
        "result": data["result"],
        "judgement": data["judgement"],
        "round": task["round"],
        "callback_url": task["callback_url"],
        "consequence": consequence(connection, catalogue, spec),
    }
    return hashlib.sha256(dump_json(shown).encode()).hexdigest()  # 64 characters: the width of its column
