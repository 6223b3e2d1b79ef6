"""Marks a text for the translators without translating it."""

from __future__ import annotations

from typing import Any

from board.web.language import Language


def N_(text: str) -> str:
    return text


def NN_(one: str, many: str) -> tuple[str, str]:
    return one, many


def label(language: Language, table: dict[str, str], name: Any) -> str:
    """The label of a name; a name that nobody foresaw stands for itself."""
    text = table.get(str(name))
    return language.gettext(text) if text is not None else str(name).replace("_", " ")
