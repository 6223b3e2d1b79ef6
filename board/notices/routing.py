"""The routes: made, listed and removed; and which of them hear of something."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, time, timedelta
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import Connection, RowMapping, delete, func, insert, select

from board.access import groups, users
from board.access.rights import Act, Actor
from board.catalogue.models import connections
from board.db.clock import now
from board.notices.kinds import EVERYBODY, Kind, Row
from board.notices.models import routes
from board.tasks.intake import Problem
from board.tasks.view import time as shown_time

MOST = 500  # each is looked at for each thing that happens


def _clock(text: str) -> str:
    try:
        return time.fromisoformat(text).strftime("%H:%M")
    except ValueError as error:
        raise ValueError(f"“{text[:20]}” is not a time of day; write it like 22:00") from error


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"“{text[:60]}” is not a time zone; write it like Asia/Shanghai") from error
    return text


Clock = Annotated[str, AfterValidator(_clock)]


class Quiet(BaseModel):
    """Hours in which nothing is sent; what happens in them is told together at their end."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    from_: Clock = Field(alias="from")
    to: Clock


class RouteIn(BaseModel):
    """audience: a user's mail address, the name of a group, or * for everything; left out: you. connection: of kind
    mail, webhook, or a chat. address: for mail; left out: that of the audience. zone: in which quiet hours count."""

    model_config = ConfigDict(extra="forbid")

    audience: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    about: Annotated[list[Kind], Field(min_length=1, max_length=20)]
    connection: Annotated[str, Field(min_length=1, max_length=120)]
    address: Annotated[str | None, Field(min_length=3, max_length=320)] = None
    quiet: Quiet | None = None
    zone: Annotated[str | None, Field(max_length=64), AfterValidator(lambda it: it if it is None else _zone(it))] = None
    lang: Literal["en", "zh_CN"] | None = None


class NoSuchRoute(Exception):
    """There is none, or it is somebody else's."""

    code = "not_found"


def make(tx: Connection, wish: RouteIn, actor: Actor, kinds: Collection[str], *, zone: str, lang: str) -> RowMapping:
    """kinds: of connections that people can be told by. zone, lang: those of the board. Raises Problem, Forbidden.

    Everybody may be told by mail at his own address; whoever tells others, or a chat, needs the right to administer.
    """
    actor.require(Act.READ)
    own = actor.name if actor.kind == "person" else None
    audience = wish.audience or own
    if audience is None:
        raise Problem("audience", "A key is nobody who can be told: name a user, a group, or *.", "missing")
    kind = tx.execute(select(connections.c.kind).where(connections.c.name == wish.connection)).scalar()
    if kind is None:
        raise Problem("connection", f"There is no connection “{wish.connection}”.", "unknown_connection")
    if kind not in kinds:
        words = f"People are not told by a connection of kind {kind}; it takes {', '.join(sorted(kinds))}."
        raise Problem("connection", words, "wrong_connection")
    address = wish.address or (audience if "@" in audience else "")
    if kind == "mail" and not address:
        raise Problem("address", "Name the mail address to which it goes.", "missing")
    if audience != own or kind != "mail" or address != own:
        actor.require(Act.ADMIN)
    _known(tx, audience)
    if tx.execute(select(func.count()).select_from(routes)).scalar_one() >= MOST:
        raise Problem("about", f"There are {MOST} routes already; remove one that nobody needs.", "too_many_routes")
    values = {
        "audience": audience,
        "about": [it for it in Kind if it in wish.about],
        "connection": wish.connection,
        "address": address if kind == "mail" else "",
        "zone": wish.zone or zone,
        "quiet_from": wish.quiet.from_ if wish.quiet else None,
        "quiet_to": wish.quiet.to if wish.quiet else None,
        "lang": wish.lang or (actor.lang if audience == own and actor.lang else lang),
        "owner": actor.identity,
        "created_at": now(),
    }
    return tx.execute(insert(routes).values(**values).returning(routes)).mappings().one()


def _known(tx: Connection, audience: str) -> None:
    if audience == EVERYBODY:
        return
    if "@" in audience:
        if users.find_by_email(tx, audience) is None:
            raise Problem("audience", f"There is no user with the address {audience}.", "unknown_user")
    elif audience not in groups.list_groups(tx):
        raise Problem("audience", f"There is no group “{audience}”.", "unknown_group")


def visible(connection: Connection, actor: Actor) -> list[RowMapping]:
    actor.require(Act.READ)
    rows = connection.execute(select(routes).order_by(routes.c.id)).mappings()
    return [row for row in rows if _may(actor, row)]


def remove(tx: Connection, route: int, actor: Actor) -> None:
    """With all that it was still to tell. Raises NoSuchRoute."""
    row = tx.execute(select(routes).where(routes.c.id == route)).mappings().first()
    if row is None or not _may(actor, row):
        raise NoSuchRoute("There is no such route.")
    tx.execute(delete(routes).where(routes.c.id == route))


def _may(actor: Actor, row: RowMapping) -> bool:
    return actor.may_manage(row["owner"]) or (actor.kind == "person" and row["audience"] == actor.name)


def document(row: RowMapping) -> dict[str, Any]:
    quiet = {"from": row["quiet_from"], "to": row["quiet_to"]} if row["quiet_from"] else None
    shown = {key: row[key] for key in ("id", "audience", "about", "connection", "zone", "lang", "owner")}
    return shown | {
        "address": row["address"] or None,
        "quiet": quiet,
        "created_at": shown_time(row["created_at"]),
        "last_message_at": shown_time(row["told_at"]),
    }


def hears(route: Row, kind: str, concerned: Collection[str], members: Mapping[str, list[str]]) -> bool:
    """concerned: users and groups; nobody in particular means everybody. members: identities of each group."""
    if kind not in route["about"]:
        return False
    audience = route["audience"]
    if not concerned or audience == EVERYBODY or audience in concerned:
        return True
    return any(f"user:{audience}" in members.get(name, ()) for name in concerned)


def quiet_until(route: Row, moment: datetime) -> datetime:
    """The moment itself, or the end of the quiet hours that it falls into; they may reach over midnight."""
    if not route["quiet_from"] or route["quiet_from"] == route["quiet_to"]:
        return moment
    local = moment.astimezone(ZoneInfo(route["zone"]))
    begin, end = time.fromisoformat(route["quiet_from"]), time.fromisoformat(route["quiet_to"])
    clock = local.time()
    within = begin <= clock < end if begin < end else clock >= begin or clock < end
    if not within:
        return moment
    day = local.date() + timedelta(days=1 if clock >= end else 0)
    return datetime.combine(day, end, local.tzinfo).astimezone(moment.tzinfo)
