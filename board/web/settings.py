"""Types and connections, read only."""

from __future__ import annotations

from typing import Any

from fastapi.responses import HTMLResponse

from board.catalogue import store
from board.catalogue.spec import TypeSpec
from board.effects.addresses import masked
from board.web.routing import PageRouter
from board.web.tree import tree
from board.web.visit import TheReader

router = PageRouter()


@router.show("/settings/types")
def types_page(visit: TheReader) -> HTMLResponse:
    with visit.board.db.read() as connection:
        rows = store.list_types(connection)
    types = [_type(row, visit.language.code) for row in rows]
    return visit.page("types.html", types=types)


@router.show("/settings/connections")
def connections_page(visit: TheReader) -> HTMLResponse:
    with visit.board.db.read() as connection:
        rows = [store.shown_connection(row) for row in store.list_connections(connection)]
    known = {"name", "kind", "url", "has_secrets", "version", "updated_at"}
    connections = [
        row | {"url": masked(row["url"]), "options": tree({k: v for k, v in row.items() if k not in known})}
        for row in rows
    ]
    return visit.page("connections.html", connections=connections)


def _type(row: Any, lang: str) -> dict[str, Any]:
    spec = TypeSpec.model_validate(row["spec"])
    return {
        "name": row["name"],
        "title": spec.shown_title(lang),
        "version": row["version"],
        "updated_at": row["created_at"],
        "updated_by": row["created_by"],
        "spec": spec,
        "tree": tree(row["spec"]),
    }
