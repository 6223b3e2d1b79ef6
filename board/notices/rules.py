"""When something rings: rules as data. Each compares one figure of board.notices.figures with a limit."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, select

from board.access.rights import Actor
from board.db.clock import now
from board.db.insert import insert_once
from board.notices.models import alert_settings

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Rule:
    """It rings once its figure has been over `threshold` for `lasting` seconds; for the same thing not again within
    `quiet` seconds."""

    name: str
    threshold: float
    lasting: float = 0.0
    quiet: float = HOUR
    enabled: bool = True


DEFAULTS = (
    Rule("queue_depth", 300, lasting=300),  # ready tasks; at a task a second they are done in five minutes
    Rule("oldest_ready", HOUR),  # seconds, by lane: ageing has lifted it twice or more by then
    Rule("failed_rate", 3, quiet=2 * HOUR),  # times the usual of seven days, and at least five in the last hour
    Rule("no_claim", 300),  # seconds
    Rule("worker_silent", 90),  # seconds; a living one is heard of every ten
    Rule("unknown_outcomes", 0, quiet=4 * HOUR),
    Rule("reviews_overdue", 0, quiet=4 * HOUR),
    Rule("disk_low", 95, quiet=12 * HOUR),  # percent used
    Rule("circuit_open", 0),  # by connection
    Rule("clock_off", 30, lasting=120),  # seconds; signatures of some chats are refused after an hour
)
NAMES = tuple(rule.name for rule in DEFAULTS)


class RuleEdit(BaseModel):
    """What is left out stays. lasting, quiet: seconds."""

    model_config = ConfigDict(extra="forbid")

    threshold: Annotated[float | None, Field(ge=0, le=1e9, allow_inf_nan=False)] = None
    lasting: Annotated[float | None, Field(ge=0, le=7 * 86_400)] = None
    quiet: Annotated[float | None, Field(ge=0, le=30 * 86_400)] = None
    enabled: bool | None = None


class NoSuchRule(Exception):
    """No rule has that name."""

    code = "not_found"


def read(connection: Connection) -> list[Rule]:
    """All rules as they are now."""
    changed = {row["rule"]: row for row in connection.execute(select(alert_settings)).mappings()}
    names = ("threshold", "lasting", "quiet", "enabled")
    return [
        replace(rule, **{name: changed[rule.name][name] for name in names}) if rule.name in changed else rule
        for rule in DEFAULTS
    ]


def edit(tx: Connection, name: str, wish: RuleEdit, actor: Actor) -> Rule:
    """Raises NoSuchRule."""
    found = next((rule for rule in read(tx) if rule.name == name), None)
    if found is None:
        raise NoSuchRule(f"There is no rule “{name[:60]}”; there are: {', '.join(NAMES)}.")
    rule = replace(found, **wish.model_dump(exclude_none=True))
    values = {key: value for key, value in asdict(rule).items() if key != "name"}
    values |= {"changed_at": now(), "changed_by": actor.identity}
    if insert_once(tx, alert_settings, "rule", {"rule": name, **values}) is None:
        tx.execute(alert_settings.update().where(alert_settings.c.rule == name).values(**values))
    return rule


def document(rule: Rule) -> dict[str, Any]:
    return {"rule": rule.name, **{key: value for key, value in asdict(rule).items() if key != "name"}}


def seconds(later: datetime, earlier: datetime) -> float:
    return (later - earlier).total_seconds()
