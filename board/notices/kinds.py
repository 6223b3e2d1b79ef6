"""What people can be told of."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from sqlalchemy import RowMapping

Row: TypeAlias = RowMapping | Mapping[str, Any]


class Kind(StrEnum):
    P0_ARRIVED = "p0_arrived"
    REVIEW_ASKED = "review_asked"
    REVIEW_REMINDER = "review_reminder"
    REVIEW_OVERDUE = "review_overdue"
    FAILED = "failed"
    UNKNOWN_OUTCOME = "unknown_outcome"
    DEADLINE_MISSED = "deadline_missed"
    MENTION = "mention"
    ALERT = "alert"
    DIGEST = "digest"


OF_REVIEWS = (Kind.REVIEW_ASKED, Kind.REVIEW_REMINDER, Kind.REVIEW_OVERDUE)
EVERYBODY = "*"
