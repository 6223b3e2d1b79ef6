"""The options of file work in a type's YAML: what is allowed, said in one sentence where it is not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

_SIZE = re.compile(r"^\s*(\d{1,12})\s*(B|KB|MB)?\s*$", re.IGNORECASE)
_BYTES = {"B": 1, "KB": 1024, "MB": 1024**2}


@dataclass(frozen=True, slots=True)
class Choice:
    name: str
    of: tuple[str, ...]
    needed: bool = False
    default: str | None = None

    def read(self, value: Any) -> str:
        """The value in the form that the work takes. Raises ValueError, whose text completes “NAME …”."""
        if value not in self.of:
            raise ValueError(f"must be one of {', '.join(self.of)}")
        return str(value)


@dataclass(frozen=True, slots=True)
class Number:
    name: str
    least: int
    most: int
    needed: bool = False
    default: int | None = None

    def read(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not self.least <= value <= self.most:
            raise ValueError(f"must be a whole number from {self.least} to {self.most}")
        return value


@dataclass(frozen=True, slots=True)
class Size:
    name: str
    needed: bool = False
    default: int | None = None

    def read(self, value: Any) -> int:
        found = _SIZE.match(str(value)) if not isinstance(value, bool) else None
        if found is None or int(found[1]) == 0:
            raise ValueError("must be a size, such as 200KB")
        return int(found[1]) * _BYTES[(found[2] or "B").upper()]


@dataclass(frozen=True, slots=True)
class Words:
    name: str
    longest: int
    needed: bool = False
    default: str | None = None

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > self.longest:
            raise ValueError(f"must be a text of at most {self.longest} characters")
        return value


Option: TypeAlias = Choice | Number | Size | Words


def problems(options: Sequence[Option], given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, plain sentence) for each option that is missing or wrong."""
    found = []
    for option in options:
        if option.name not in given:
            if option.needed:
                found.append((option.name, f"{option.name} is missing."))
            continue
        try:
            option.read(given[option.name])
        except ValueError as error:
            found.append((option.name, f"{option.name} {error}."))
    return found


def values(options: Sequence[Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """All options that hold, in the form that the work takes."""
    read = {it.name: it.read(given[it.name]) for it in options if it.name in given}
    return {it.name: it.default for it in options if it.default is not None} | read
