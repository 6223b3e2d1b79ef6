"""What a task's type says of its place in line: the key under which it is limited, and small ones before big ones."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

from board import templating
from board.catalogue.spec import TypeSpec

# `order_by: size`: each halving of a payload counts as if it had come so many seconds earlier, from 4 MB (the usual
# BOARD_MAX_JSON) down, at most two minutes: so much longer may a big one wait than a small one of the same moment.
SECONDS_PER_HALVING = 7.5
BIGGEST = 4 * 1024 * 1024  # bytes
MOST_SECONDS = 120.0


class BadKey(Exception):
    """The type's concurrency key cannot be worked out for this task."""


def limit_key(spec: TypeSpec, context: Mapping[str, Any]) -> str | None:
    """A hash of the type's concurrency key, in the same writing for equal keys; None: the type has none, or the key or
    a part of it is missing or empty, and then no limit per key holds. context: what the template sees. Raises BadKey.
    """
    template = spec.limits.concurrency_key
    if template is None:
        return None
    try:
        key = templating.fill_strict(template, context)
    except templating.MissingValue:
        return None
    except templating.TemplateProblem as error:
        raise BadKey(f"The key of this type's limits cannot be worked out: {error}") from error
    # 128 bits: enough to tell keys apart for ever, and no customer's number in lists of limits.
    return hashlib.sha256(f"{spec.name}\0{key.strip()}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def ahead(spec: TypeSpec, size: int) -> float:
    """So many seconds before its time a task of `size` bytes takes its place in line."""
    if spec.limits.order_by != "size":
        return 0.0
    halvings = math.log2(BIGGEST / max(1, size))
    return min(MOST_SECONDS, max(0.0, SECONDS_PER_HALVING * halvings))
