"""How Dify makes tools of an OpenAPI document, and what it sends when one is called: its rules as they are known.

Written from what Dify's importer was found to do: what it loses it loses here, and what breaks it raises here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

MOST_OPERATIONS = 100
METHODS = ("get", "post", "put", "patch", "delete", "head", "options", "trace")
TYPES = {"integer": "number", "number": "number", "boolean": "boolean", "string": "string", "array": "array"}


class ImportFails(Exception):
    """Dify refuses the document, or breaks on it."""


@dataclass(frozen=True)
class Parameter:
    name: str
    type: str
    description: str
    required: bool
    default: Any
    place: str  # query, path, header, cookie or body


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    method: str
    url: str
    parameters: list[Parameter]
    content_type: str | None

    def sent(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The JSON body that leaves Dify for these arguments of a model or a workflow."""
        known = {it.name: it for it in self.parameters}
        arguments = {name: value for name, value in arguments.items() if name in known}  # others are not passed on
        body = {}
        for it in self.parameters:
            if it.name in arguments:
                body[it.name] = _converted(it, arguments[it.name])
            elif it.required:
                raise ImportFails(f"missing required parameter {it.name}")
            elif it.default is not None:
                body[it.name] = it.default
        return body


@dataclass
class Imported:
    description: str
    tools: list[Tool] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def import_document(document: Any) -> Imported:
    """Read a document. Raises ImportFails."""
    if isinstance(document, str | bytes):
        document = json.loads(document)
    for part in ("info", "servers", "paths"):
        if not document.get(part):
            raise ImportFails(f"invalid schema: '{part}'")
    server = document["servers"][0]["url"]
    if "{" in server:
        raise ImportFails("variables of a server are not filled in")
    imported = Imported(_text(document["info"].get("description") or ""))
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                imported.tools.append(_tool(document, imported, server + path, path, method, item[method]))
    if len(imported.tools) > MOST_OPERATIONS:
        raise ImportFails("too many operations")
    return imported


def _tool(
    document: dict[str, Any], imported: Imported, url: str, path: str, method: str, operation: dict[str, Any]
) -> Tool:
    if method in ("options", "trace"):
        imported.warnings.append(f"{method} fails when it is called")
    parameters: list[Parameter] = []
    for given in operation.get("parameters", []):
        it = _resolved(document, given)
        schema = it.get("schema", {})
        parameters.append(
            Parameter(it["name"], _type(schema), _text(it.get("description", "")), it.get("required", False),
                      schema.get("default"), it["in"])
        )  # fmt: skip
    content = operation.get("requestBody", {}).get("content", {})  # a $ref to requestBodies is not followed
    for media in content.values():
        schema = _resolved(document, media.get("schema", {}))
        for name, shape in schema.get("properties", {}).items():  # anyOf, arrays and free objects have none
            default = shape.get("default") if isinstance(shape, dict) else None
            if isinstance(default, dict | list):
                default = None
            required = name in schema.get("required", [])
            about = _text(shape.get("description", "")) if isinstance(shape, dict) else ""
            parameters.append(Parameter(name, _type(shape), about, required, default, "body"))
    names = [it.name for it in parameters]
    imported.warnings += [
        f"{name} stands twice in {url}" for name in sorted({it for it in names if names.count(it) > 1})
    ]
    name = operation.get("operationId") or path.replace("/", "_").strip("_") + f"_{method}"
    about = operation["description"] if "description" in operation else operation.get("summary", "")
    return Tool(name, _text(about), method, url, parameters, next(iter(content), None))


def _resolved(document: dict[str, Any], given: Any) -> Any:
    if isinstance(given, dict) and "$ref" in given:
        found: Any = document
        for part in given["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        return found
    return given


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ImportFails("a description is null")
    return value


def _type(schema: Any) -> str:
    if isinstance(schema, bool):
        raise ImportFails("a schema is a boolean")
    kind = schema.get("type")
    if isinstance(kind, list):
        raise ImportFails("unhashable type: 'list'")
    if schema.get("format") == "binary":
        return "file"
    return TYPES.get(kind, "string")


def _converted(parameter: Parameter, value: Any) -> Any:
    """A value as Dify converts it by the parameter's type before it is sent."""
    match parameter.type:
        case "string":
            return "" if value is None else value if isinstance(value, str) else str(value)
        case "number":
            if value in (None, ""):
                raise TypeError("None is no number")
            return value if isinstance(value, int | float) else float(value) if "." in value else int(value)
        case "boolean":
            return value.lower() not in ("false", "no", "n", "0", "") if isinstance(value, str) else bool(value)
        case "array":
            return value if isinstance(value, list) else [value]
        case _:
            return value
