"""Texts that a spreadsheet would compute: marked when they are written as CSV, and taken back when they are read.

A CSV cell has no type: a program that opens the file takes =1+1 for a formula. The usual mark, an apostrophe in front,
keeps it a text. Cells that already begin with apostrophes and such a sign get one more, so that every text comes back
as it was.
"""

from __future__ import annotations

import re

# The signs that OWASP names ("CSV Injection"), and their full-width forms, which Excel takes for the same.
_ACTIVE = re.compile(r"'*[=+\-@\t\r＝＋－＠]")
_MARKED = re.compile(r"'+[=+\-@\t\r＝＋－＠]")
_NEGATIVE = re.compile(r"-\d+([.,]\d+)*", re.ASCII)  # a number and nothing else: no program computes anything of it
# What XML cannot hold and databases refuse: control characters but tab and line ends, and two non-characters.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def marked(text: str) -> str:
    """The text as a CSV cell that no program computes."""
    return f"'{text}" if _ACTIVE.match(text) and not _NEGATIVE.fullmatch(text) else text


def unmarked(text: str) -> str:
    """The text of a CSV cell without the mark."""
    return text[1:] if _MARKED.match(text) else text


def without_control(text: str) -> tuple[str, int]:
    """Without characters that no table can hold, and how many there were."""
    return _CONTROL.subn("", text)
