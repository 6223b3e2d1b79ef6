"""The API's description as a plain page of our own."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from fastapi.responses import HTMLResponse

from board.web.routing import PageRouter
from board.web.visit import TheVisit

router = PageRouter()
_METHODS = ("get", "post", "put", "patch", "delete")


@router.show("/docs")
def reference_page(visit: TheVisit) -> HTMLResponse:
    schema: dict[str, Any] = visit.request.app.openapi()
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path, methods in schema["paths"].items():
        for method in _METHODS:
            if call := methods.get(method):
                groups[(call.get("tags") or ["other"])[0]].append(_call(schema, method, path, call))
    return visit.page("docs.html", groups=dict(groups), info=schema["info"], base=visit.board.settings.public_url)


def _call(schema: dict[str, Any], method: str, path: str, call: dict[str, Any]) -> dict[str, Any]:
    body = call.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    parameters = [item for item in call.get("parameters", []) if item["in"] in ("path", "query", "header")]
    return {
        "method": method.upper(),
        "path": path,
        "text": call.get("description") or call.get("summary", ""),
        "parameters": [
            {"name": p["name"], "in": p["in"], "type": _type(p.get("schema", {})), "required": p.get("required", False)}
            for p in parameters
        ],
        "body": _fields(schema, body),
    }


def _fields(schema: dict[str, Any], body: dict[str, Any]) -> list[dict[str, Any]]:
    found = _resolved(schema, body)
    required = found.get("required", [])
    return [
        {"name": name, "in": "", "type": _type(_resolved(schema, item)), "required": name in required}
        for name, item in found.get("properties", {}).items()
    ]


def _resolved(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """The object behind a reference or the first of alternatives that is not null."""
    for choice in part.get("anyOf", []):
        if choice.get("type") != "null":
            return _resolved(schema, choice)
    name = part.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = schema["components"]["schemas"][name] if name else part
    return found


def _type(part: dict[str, Any]) -> str:
    if "anyOf" in part:
        return " | ".join(dict.fromkeys(_type(choice) for choice in part["anyOf"] if choice.get("type") != "null"))
    if "enum" in part:
        return " | ".join(str(value) for value in part["enum"])
    name = str(part.get("format") or part.get("type") or part.get("$ref", "").rpartition("/")[2] or "any")
    return f"list of {_type(part['items'])}" if name == "array" and part.get("items") else name
