"""How a person is shown in little room."""

from __future__ import annotations

import re

_HAN = re.compile("[\u3400-\u9fff]")


def initials(identity: str) -> str:
    """Two letters of a name or a mail address; of a Chinese name its last two characters, which is how it is shortened.

    identity: as in the history, `user:mei.lin@example.org`, or without the kind.
    """
    name = identity.split(":", 1)[-1].split("@", 1)[0]
    if han := _HAN.findall(name):
        return "".join(han[-2:])
    words = [word for word in re.split(r"[\W_]+", name) if word]
    letters = words[0][0] + words[-1][0] if len(words) > 1 else "".join(words)[:2]
    return letters.upper() or "?"
