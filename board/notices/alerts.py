"""Rings: once a minute the leader compares the figures with the rules, and says what begins and what is over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from board.db.clock import read_now
from board.db.engine import Database
from board.db.locks import Turn, wait_for_turn
from board.effects import subscriptions
from board.effects.subscriptions import Event
from board.notices import figures, noting, rules
from board.notices.kinds import Kind
from board.notices.models import alerts
from board.notices.rules import Rule, seconds
from board.tasks.view import time as shown_time

MOST = 200  # shown of the history
KEPT_DAYS = 90


@dataclass(frozen=True, slots=True)
class Alerting:
    """What the leader does about alerts."""

    db: Database
    data_dir: Path

    def look(self) -> None:
        with self.db.read() as connection:
            found = figures.measure(connection, self.data_dir)
        with self.db.write() as tx:
            evaluate(tx, found)

    def forget(self) -> None:
        with self.db.write() as tx:
            old = read_now(tx) - timedelta(days=KEPT_DAYS)
            tx.execute(delete(alerts).where(alerts.c.closed_at < old))


def evaluate(tx: Connection, found: list[figures.Figure]) -> None:
    """Compare, and note what is to be told. One at a time, so that nothing rings twice."""
    wait_for_turn(tx, Turn.ALERTS)
    moment = read_now(tx)
    values = {(name, scope): value for name, scope, value in found}
    standing = {
        (row["rule"], row["scope"]): row
        for row in tx.execute(select(alerts).where(alerts.c.closed_at.is_(None))).mappings()
    }
    known = {rule.name: rule for rule in rules.read(tx)}
    for place in sorted({*values, *standing}):
        rule = known.get(place[0])
        value = values.get(place, 0.0)
        if rule is not None and rule.enabled and value > rule.threshold:
            _holds(tx, rule, place[1], value, standing.get(place), moment)
        elif (row := standing.get(place)) is not None:
            _over(tx, row, value, moment)


def _holds(tx: Connection, rule: Rule, scope: str, value: float, row: RowMapping | None, moment: datetime) -> None:
    if row is None:
        fresh = {"rule": rule.name, "scope": scope, "since": moment, "value": value, "threshold": rule.threshold}
        row = tx.execute(insert(alerts).values(told=False, **fresh).returning(alerts)).mappings().one()
    if row["opened_at"] is not None or seconds(moment, row["since"]) < rule.lasting:
        return
    told = not _rang_lately(tx, rule, scope, moment)
    opened = {"opened_at": moment, "value": value, "threshold": rule.threshold, "told": told}
    row = tx.execute(update(alerts).where(alerts.c.id == row["id"]).values(**opened).returning(alerts)).mappings().one()
    if told:
        _tell(tx, row, "open")


def _over(tx: Connection, row: RowMapping, value: float, moment: datetime) -> None:
    if row["opened_at"] is None:  # it did not last
        tx.execute(delete(alerts).where(alerts.c.id == row["id"]))
        return
    closed = update(alerts).where(alerts.c.id == row["id"]).values(closed_at=moment).returning(alerts)
    row = tx.execute(closed).mappings().one()
    if row["told"]:
        _tell(tx, row, "closed")


def _rang_lately(tx: Connection, rule: Rule, scope: str, moment: datetime) -> bool:
    query = select(alerts.c.id).where(
        alerts.c.rule == rule.name,
        alerts.c.scope == scope,
        alerts.c.told,
        alerts.c.opened_at > moment - timedelta(seconds=rule.quiet),
    )
    return tx.execute(query.limit(1)).first() is not None


def _tell(tx: Connection, row: RowMapping, state: str) -> None:
    """To people by their routes, and to programs by their subscriptions to queue.alert."""
    data = {name: row[name] for name in ("rule", "scope", "value", "threshold")} | {"state": state}
    if Kind.ALERT in noting.wanted(tx):
        noting.note(tx, Kind.ALERT, f"alert:{row['id']}:{state}", data)
    if Event.QUEUE_ALERT in subscriptions.Wanted().events(tx):
        subscriptions.note(tx, Event.QUEUE_ALERT, f"{row['id']}:{state}", data=document(row))


def history(connection: Connection, *, only_open: bool = False) -> list[dict[str, Any]]:
    """What rang, the latest first."""
    query = select(alerts).where(alerts.c.opened_at.is_not(None))
    if only_open:
        query = query.where(alerts.c.closed_at.is_(None))
    rows = connection.execute(query.order_by(alerts.c.opened_at.desc(), alerts.c.id.desc()).limit(MOST)).mappings()
    return [document(row) for row in rows]


def document(row: RowMapping) -> dict[str, Any]:
    return {
        "id": row["id"],
        "rule": row["rule"],
        "scope": row["scope"] or None,
        "status": "open" if row["closed_at"] is None else "closed",
        "value": row["value"],
        "threshold": row["threshold"],
        "since": shown_time(row["since"]),
        "opened_at": shown_time(row["opened_at"]),
        "closed_at": shown_time(row["closed_at"]),
        "told": row["told"],
    }
