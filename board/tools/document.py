"""The tool document that Dify imports: a reduced OpenAPI document, flat, in words for a model.

What Dify's importer loses or breaks on does not stand in it (docs/decisions/0020-tools-for-agents.md): every operation
has a short name and a description, one JSON body with text fields only, and a server.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from board.tools.verb import Verb
from board.tools.verbs import VERBS

PREFIX = "/integrations/dify"
ABOUT = (
    "The task board of this organisation: file work, find out how it stands, ask people to decide, report results. "
    "Every tool answers with a message that says what to do next."
)
_REFUSALS = {
    "400": "The request cannot be read, or the key is missing or may not do this.",
    "404": "There is no such task.",
    "409": "Not possible where the task stands, or not just now.",
    "422": "An argument does not fit; the message names it.",
}


def document(public_url: str) -> dict[str, Any]:
    """public_url: the board's address as Dify reaches it, without a slash at its end."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "AI Task Board", "version": version("ai-task-board"), "description": ABOUT},
        "servers": [{"url": public_url}],
        "paths": {f"{PREFIX}/{verb.name}": {"post": operation(verb)} for verb in VERBS},
    }


def operation(verb: Verb) -> dict[str, Any]:
    """One verb as an operation."""
    return {
        "operationId": verb.name,
        "summary": verb.title,
        "description": verb.about,
        "requestBody": {"required": True, "content": {"application/json": {"schema": body(verb)}}},
        "responses": {
            "200": _answer("What came of it, with a message."),
            **({"201": _answer("A new task was filed.")} if verb.name in ("create_task", "request_review") else {}),
            **{status: _answer(text) for status, text in _REFUSALS.items()},
        },
    }


def body(verb: Verb) -> dict[str, Any]:
    """The arguments as a flat object of texts; one that may be left out has the empty text as its default."""
    return {
        "type": "object",
        "properties": {
            it.flat_name: {
                "type": "string",
                "description": it.flat_about,
                **({} if it.required else {"default": ""}),
            }
            for it in verb.arguments
        },
        "required": [it.flat_name for it in verb.arguments if it.required],
    }


def _answer(text: str) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": {"type": "object"}}}}
