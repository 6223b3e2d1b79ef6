"""The unique task ID in its stored form. The rule is part of the contract: docs/task-ids.md."""

from __future__ import annotations

import hashlib
import re
import unicodedata

MAX_LENGTH = 200  # characters; with four bytes each it still fits every index we use
# They have a meaning in a URL's path or are rewritten by servers and proxies on the way.
FORBIDDEN = frozenset("/?#%\\")
# Unicode's White_Space, spelled out: Python's \s also takes U+001C to U+001F, which are control characters.
_WHITE = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")

# Most IDs, which need no closer look: every letter of these stays as it is.
_PLAIN = re.compile(r"[A-Za-z0-9_:@+=~-][A-Za-z0-9_.:@+=~-]*", re.ASCII)


class BadTaskId(ValueError):
    """The ID cannot be used. The text names the character and is fit for a person."""


def canonical(text: str) -> str:
    """The form under which an ID is stored and compared.

    NFC first; each run of Unicode white space becomes one space; ends are trimmed. Case and width count. Raises
    BadTaskId for an empty or over-long ID and for characters that cannot be told apart or do not survive a URL.
    """
    if len(text) <= MAX_LENGTH and _PLAIN.fullmatch(text):
        return text
    text = _WHITE.sub(" ", unicodedata.normalize("NFC", text)).strip(" ")
    if not text:
        raise BadTaskId("task_id is empty.")
    if len(text) > MAX_LENGTH:
        raise BadTaskId(f"task_id has {len(text)} characters; at most {MAX_LENGTH} are allowed.")
    if text in (".", ".."):
        raise BadTaskId(f"task_id may not be “{text}”: browsers and proxies rewrite such a path.")
    for character in text:
        category = unicodedata.category(character)
        if character in FORBIDDEN or category in ("Cc", "Cf", "Cs", "Cn"):
            raise BadTaskId(f"task_id may not contain {describe(character)}.")
    return text


def describe(character: str) -> str:
    """A character in words that survive any font: `“/”`, or `U+200B ZERO WIDTH SPACE`."""
    if character in FORBIDDEN:
        return f"“{character}”"
    return f"U+{ord(character):04X} {unicodedata.name(character, '(a control or unassigned character)')}"


def id_safe(text: str) -> str:
    """Any text as a usable part of an ID: bad characters become `_`, and a hash keeps different texts apart.

    A text that is fine already stays as it is.
    """
    try:
        if canonical(text) == text:
            return text
    except BadTaskId:
        pass
    kept = "".join("_" if unicodedata.category(c)[0] == "C" or c in FORBIDDEN else c for c in text)
    kept = _WHITE.sub(" ", unicodedata.normalize("NFC", kept)).strip(" .")[:100]
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{kept}-{digest}" if kept else digest
