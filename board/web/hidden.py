"""Characters that a reader cannot see but that change what he reads, or carry words past him to another machine."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Any

# Controls other than tab and line ends; directions (bidi); zero width; tags and the variation selectors that can carry
# any byte unseen. A zero-width joiner between two pictures belongs to an emoji and stays.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e01ef]"
    "|(?<![\u2190-\u2bff\ufe0f\U0001f000-\U0001faff])\u200d|\u200d(?![\u2190-\u2bff\U0001f000-\U0001faff])"
)
Found = Counter[str]


def strip(text: str, found: Found) -> str:
    """The text without them; each is counted in `found`."""

    def remove(match: re.Match[str]) -> str:
        found[match[0]] += 1
        return ""

    return _HIDDEN.sub(remove, text)


def strip_all(value: Any, found: Found) -> Any:
    """The same for every text and key in a JSON value."""
    if isinstance(value, str):
        return strip(value, found)
    if isinstance(value, dict):
        seen: dict[str, Any] = {}
        for key, item in value.items():
            name = strip(key, found)
            while name in seen:  # two keys that only look alike must not hide each other
                name += " ′"
            seen[name] = strip_all(item, found)
        return seen
    if isinstance(value, list):
        return [strip_all(item, found) for item in value]
    return value


def named(found: Found) -> list[tuple[str, str, int]]:
    """What was found as (U+200B, ZERO WIDTH SPACE, how often), the most frequent first."""
    return [
        (f"U+{ord(character):04X}", unicodedata.name(character, "CONTROL"), number)
        for character, number in found.most_common()
    ]


def reveal(value: Any) -> Any:
    """A JSON value with every hidden character written out, as ⟦U+200B⟧."""
    if isinstance(value, str):
        return _HIDDEN.sub(lambda match: "".join(f"⟦U+{ord(character):04X}⟧" for character in match[0]), value)
    if isinstance(value, dict):
        return {reveal(key): reveal(item) for key, item in value.items()}
    return [reveal(item) for item in value] if isinstance(value, list) else value
