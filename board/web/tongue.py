"""In which language a text is, as far as screen readers and fonts need to know it."""

from __future__ import annotations

import re

from markupsafe import Markup

_HAN = re.compile("[\u3400-\u9fff]")
_KANA = re.compile("[\u3040-\u30ff]")
_LATIN = re.compile("[A-Za-z]")
_ENOUGH = 2000  # characters looked at: the beginning tells


def tongue(text: str) -> str | None:
    """`zh` or `en`; None where neither is certain. Latin letters alone are taken for English on a Chinese page only."""
    seen = text[:_ENOUGH]
    han, latin = len(_HAN.findall(seen)), len(_LATIN.findall(seen))
    if _KANA.search(seen):
        return "ja"
    if han and han * 2 >= latin / 2:  # a character says as much as some four letters
        return "zh"
    return "en" if latin and not han else None


def marked(page: str, text: object) -> Markup:
    """The attribute for an element in a page of this language; empty where the text is in it already.

    page: `en` or `zh_CN`. A text in Latin letters on an English page may be in any language: it is not marked.
    """
    found = tongue(str(text or ""))
    if found is None or page.startswith(found):
        return Markup("")
    return Markup(' lang="{}"').format(found)
