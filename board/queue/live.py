"""Settings of the queue that people change while it runs: weights, windows of the day, pauses. Every change is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, time
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import ColumnElement, Connection, insert, select, update

from board.db.clock import now
from board.db.insert import insert_once
from board.queue.models import changes, live_settings

KEY = "queue"
Day = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
DAYS: tuple[Day, ...] = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def _clock(text: str) -> str:
    try:
        time.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"“{text}” is not a time of day; write it like 08:30") from error
    return text


Weights = Annotated[list[Annotated[int, Field(ge=1, le=1000)]], Field(min_length=4, max_length=4)]
Clock = Annotated[str, AfterValidator(_clock)]


class Window(BaseModel):
    """Other weights for a part of the day. `to` before `from` reaches into the next day; days name where it begins."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, serialize_by_alias=True)

    from_: Clock = Field(alias="from")
    to: Clock
    days: list[Day] = list(DAYS)
    weights: Weights

    def holds(self, moment: datetime) -> bool:
        """moment: in the board's zone."""
        begin, end, clock = time.fromisoformat(self.from_), time.fromisoformat(self.to), moment.time()
        today, yesterday = DAYS[moment.weekday()], DAYS[moment.weekday() - 1]
        if begin <= end:
            return today in self.days and begin <= clock < end
        return (today in self.days and clock >= begin) or (yesterday in self.days and clock < end)


class QueueRules(BaseModel):
    """What people have set. weights None: those of BOARD_LANE_WEIGHTS."""

    model_config = ConfigDict(extra="forbid")

    weights: Weights | None = None
    windows: list[Window] = []
    paused: bool = False
    paused_types: list[str] = []

    def is_paused(self, type_name: str) -> bool:
        return self.paused or type_name in self.paused_types

    def weights_at(self, moment: datetime, zone: str, usual: Sequence[int]) -> Sequence[int]:
        """The weights of P0 to P3 at a moment: of the first window that holds, else the set ones, else the usual."""
        here = moment.astimezone(ZoneInfo(zone))
        for window in self.windows:
            if window.holds(here):
                return window.weights
        return self.weights or usual


def read(connection: Connection) -> QueueRules:
    stored = connection.execute(select(live_settings.c.value).where(live_settings.c.key == KEY)).scalar()
    return QueueRules.model_validate(stored or {})


def changed() -> ColumnElement[datetime]:
    """When it was last changed, for a question asked of this table; null: never."""
    return select(live_settings.c.changed_at).where(live_settings.c.key == KEY).scalar_subquery()


def change(tx: Connection, actor: str, edit: Callable[[QueueRules], QueueRules], note: str | None = None) -> QueueRules:
    """Read, edit, write, and keep who changed what, in one transaction."""
    insert_once(tx, live_settings, "key", {"key": KEY, "value": {}, "changed_at": now(), "changed_by": actor})
    query = select(live_settings.c.value).where(live_settings.c.key == KEY)
    if tx.dialect.name == "postgresql":
        query = query.with_for_update()
    before: Any = tx.execute(query).scalar_one()
    rules = edit(QueueRules.model_validate(before))
    after = rules.model_dump()
    if after != QueueRules.model_validate(before).model_dump():
        values = {"value": after, "changed_at": now(), "changed_by": actor}
        tx.execute(update(live_settings).where(live_settings.c.key == KEY).values(**values))
        tx.execute(insert(changes).values(at=now(), actor=actor, what=KEY, before=before, after=after, note=note))
    return rules
