"""The bodies by which tasks come in, and the kinds of values that stand in them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field


def _written(value: Any) -> Any:
    """Numbers are refused: seconds and milliseconds look alike. A `+` that became a space in an address is mended."""
    if value is None or isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not re.match(r"\d{4}-\d\d-\d\d[Tt ]", value):
        raise ValueError("write a time with its zone, such as 2026-11-30T09:00:00+08:00")
    return re.sub(r" (?=\d\d:?\d\d$)", "+", value) if "T" in value else value


def _in_range(value: datetime) -> datetime:
    """In UTC. Both databases keep the years 1 to 9999; nobody plans before 1970 or in the last of them."""
    if not 1970 <= value.year <= 9998:
        raise ValueError("the year must be between 1970 and 9998")
    return value.astimezone(UTC)


Text = Annotated[str, Field(max_length=1000)]
Tag = Annotated[str, Field(min_length=1, max_length=100)]
# RFC 3339 with a zone; the moment in UTC.
Moment = Annotated[AwareDatetime, BeforeValidator(_written), AfterValidator(_in_range)]


class Origin(BaseModel):
    """Where the caller's own execution can be found."""

    model_config = ConfigDict(extra="forbid")

    system: Text | None = None
    workflow_id: Text | None = None
    execution_id: Text | None = None
    url: Text | None = None


def _http(value: str | None) -> str | None:
    if value is not None and not re.match(r"^https?://[^/\s]+", value):
        raise ValueError("must start with http:// or https://")
    return value


class TaskIn(BaseModel):
    """The body of POST /tasks. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    type: str
    task_id: str | None = None
    title: Text | None = None
    priority: Literal["P0", "P1", "P2", "P3"] | None = None
    payload: dict[str, Any] = {}
    source: Text | None = None
    origin: Origin | None = None
    callback_url: Annotated[str, Field(max_length=4000), AfterValidator(_http)] | None = None
    run_after: Moment | None = None
    due_at: Moment | None = None
    deadline_at: Moment | None = None
    max_retries: int | None = Field(default=None, ge=0, le=100)
    tags: list[Tag] = Field(default=[], max_length=50)
    note: Annotated[str, Field(max_length=10_000)] | None = None
    on_duplicate: Literal["return", "requeue", "reject"] = "return"
    idempotency_key: str | None = Field(default=None, alias="Idempotency-Key")
    needs: Any = None
    fields: Any = None
