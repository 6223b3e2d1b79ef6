"""What changed between two rounds: the texts of two outputs, word by word, Chinese character by character.

The way from one text to the other is found as E. W. Myers describes it ("An O(ND) Difference Algorithm and Its
Variations", 1986); how many steps it may take is bounded, because an AI wrote what is compared here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

# A word with the space after it, one Chinese, Japanese or Korean character, or one other sign.
_PIECE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]|\w+\s*|\s+|[^\w\s]", re.UNICODE)
# Pieces put in or taken out. Texts that differ in more have little in common, and are shown one after the other; the
# work grows with the square of this number (0.1 s for 400).
_MOST_EDITS = 400
_MOST_FIELDS = 12


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs. parts: (same, new or gone; the text)."""

    name: str
    parts: list[tuple[str, str]]


def changes(before: Any, after: Any) -> list[Change]:
    """The fields of two JSON values whose texts differ, in the order of the later one; at most _MOST_FIELDS."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    names = [*new, *(name for name in old if name not in new)]
    found = (name for name in names if old.get(name) != new.get(name))
    return [Change(name, compare(old.get(name, ""), new.get(name, ""))) for name in islice(found, _MOST_FIELDS)]


def compare(before: str, after: str) -> list[tuple[str, str]]:
    """Both texts in one: what is in both, only in the later (new), only in the earlier (gone)."""
    old, new = _PIECE.findall(before), _PIECE.findall(after)
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    middle = _walk(old[start : len(old) - end], new[start : len(new) - end])
    parts = [("same", "".join(old[:start])), *_grouped(middle), ("same", "".join(old[len(old) - end :]))]
    return [part for part in parts if part[1]]


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """How many pieces at the start are the same."""
    return next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def _walk(old: list[str], new: list[str]) -> list[tuple[str, str]]:
    """The pieces in order, each same, gone or new."""
    furthest = {1: 0}  # by diagonal (place in old minus place in new): how far old was read
    trail: list[dict[int, int]] = []
    for edits in range(min(len(old) + len(new), _MOST_EDITS) + 1):
        trail.append(dict(furthest))
        for diagonal in range(-edits, edits + 1, 2):
            x = _step(furthest, diagonal, edits)
            while x < len(old) and x - diagonal < len(new) and old[x] == new[x - diagonal]:
                x += 1
            furthest[diagonal] = x
            if x >= len(old) and x - diagonal >= len(new):
                return _back(old, new, trail)
    return [*(("gone", piece) for piece in old), *(("new", piece) for piece in new)]


def _step(furthest: dict[int, int], diagonal: int, edits: int) -> int:
    """Where the best edit onto this diagonal leads: one piece put in, or one taken out."""
    put_in, taken_out = furthest.get(diagonal + 1, -1), furthest.get(diagonal - 1, -1)
    return put_in if diagonal == -edits or (diagonal != edits and taken_out < put_in) else taken_out + 1


def _back(old: list[str], new: list[str], trail: list[dict[int, int]]) -> list[tuple[str, str]]:
    """The pieces that the trail passed, found from the end: each edit, and what is the same after it."""
    walked: list[tuple[str, str]] = []
    x, y = len(old), len(new)
    for edits in range(len(trail) - 1, 0, -1):
        diagonal = x - y
        landed = _step(trail[edits], diagonal, edits)
        walked += [("same", piece) for piece in reversed(old[landed:x])]
        put_in = landed == trail[edits].get(diagonal + 1)
        if put_in and (diagonal == -edits or trail[edits].get(diagonal - 1, -1) < landed):
            x, y = landed, landed - diagonal - 1
            walked.append(("new", new[y]))
        else:
            x, y = landed - 1, landed - diagonal
            walked.append(("gone", old[x]))
    return [*(("same", piece) for piece in old[:x]), *reversed(walked)]


def _grouped(walked: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Neighbours together; within one change first what is gone, then what is new."""
    parts: list[tuple[str, str]] = []
    for same, run in groupby(walked, key=lambda step: step[0] == "same"):
        steps = list(run)
        for kind in ("same",) if same else ("gone", "new"):
            parts.append((kind, "".join(text for it, text in steps if it == kind)))
    return parts


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for place, item in enumerate(value, 1):
            yield from _leaves(item, f"{path} {place}".strip())
    elif value is not None:
        yield path, value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
