"""What happens is told once to whom it concerns: together where much happens, later in quiet hours, never twice."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import RowMapping, insert, select

from board.access import groups, users
from board.access.rights import key_actor
from board.notices import noting, routing
from board.notices.gather import gather_some
from board.notices.models import noted, notices, routes
from board.notices.routing import RouteIn, quiet_until
from tests.rig.receiver import Receiver, Reply
from tests.rig.working import OpenWorking, Probe, WorkingBoard

ROOT = key_actor("root", ["admin", "read"])
OK = Reply(body=b'{"errcode":0,"errmsg":"ok"}')


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noting, "KNOWN_SECONDS", 0.0)


def route(board: WorkingBoard, receiver: Receiver, *about: str, kind: str = "wecom", **more: Any) -> int:
    """A new route through a connection of its own."""
    receiver.default = OK
    name = f"{kind}-{more.get('audience', 'all')}".replace("*", "").replace("@", ".")
    board.apply(connections=[{"name": name, "kind": kind, "url": f"{receiver.url}/{name}?key=x"}])
    wish = RouteIn.model_validate({"audience": "*", "about": about, "connection": name, **more})
    with board.board.db.write() as tx:
        made = routing.make(tx, wish, ROOT, board.board.notifiers, zone="UTC", lang="en")
    return int(made["id"])


def told(board: WorkingBoard) -> list[RowMapping]:
    with board.board.db.read() as connection:
        return list(connection.execute(select(notices).order_by(notices.c.id)).mappings())


def texts(receiver: Receiver) -> list[str]:
    return [json.loads(it.body)["markdown"]["content"] for it in receiver.requests]


def urgent(board: WorkingBoard, *names: str) -> None:
    for name in names:
        board.submit(name, priority="P0", title=f"Title of {name}")


def test_nothing_is_noted_where_nobody_asks_for_it(working: OpenWorking, receiver: Receiver) -> None:
    board = working(start=False)
    board.type(use="echo")
    urgent(board, "T-0")
    route(board, receiver, "failed")
    urgent(board, "T-1")
    with board.board.db.read() as connection:
        assert connection.execute(select(noted)).all() == []


def test_what_happens_at_once_is_one_message_and_what_follows_within_a_minute_another(
    working: OpenWorking, receiver: Receiver
) -> None:
    board = working(start=False)
    board.type(use="echo")
    route(board, receiver, "p0_arrived")
    urgent(board, "T-1")
    assert board.board.notices.look() == 1
    urgent(board, "T-2", "T-3")
    assert board.board.notices.look() == 0
    board.at(61)
    assert board.board.notices.look() == 1
    assert board.board.notices.look() == 0
    first, second = texts(receiver)
    assert first.startswith("**AI Task Board: Urgent task arrived: Title of T-1**")
    assert "/tasks/T-1)" in first
    assert "Urgent task arrived × 2" in second
    assert "T-2" in second
    assert "T-3" in second
    assert [it["status"] for it in told(board)] == ["sent"] * 3


def test_a_move_that_is_undone_tells_nothing(working: OpenWorking, receiver: Receiver) -> None:
    board = working(start=False)
    board.type(use="echo")
    route(board, receiver, "p0_arrived")
    board.board.ledger.followers.append(lambda _tx, _moved: 1 / 0)  # type: ignore[arg-type,return-value]
    with pytest.raises(ZeroDivisionError):
        urgent(board, "T-1")
    assert board.board.notices.look() == 0


def test_the_same_thing_noted_twice_is_told_once(working: OpenWorking, receiver: Receiver) -> None:
    board = working(start=False)
    board.type(use="echo")
    route(board, receiver, "p0_arrived")
    urgent(board, "T-1")
    with board.board.db.write() as tx:
        row = dict(tx.execute(select(noted)).mappings().one())
        del row["id"]
        tx.execute(insert(noted).values(row))
    assert board.board.notices.look() == 1
    with board.board.db.write() as tx:
        tx.execute(insert(noted).values(row))
    board.at(61)
    assert board.board.notices.look() == 0
    assert len(told(board)) == 1


@pytest.mark.parametrize(("kind", "status", "calls"), [("wecom", "unknown", 0), ("webhook", "sent", 1)])
def test_a_message_whose_process_died_is_not_sent_again_but_to_a_webhook(
    working: OpenWorking, receiver: Receiver, kind: str, status: str, calls: int
) -> None:
    board = working(start=False)
    board.type(use="echo")
    route(board, receiver, "p0_arrived", kind=kind)
    urgent(board, "T-1")
    with board.board.db.write() as tx:
        gather_some(tx, board.board.catalogue)
    with board.board.db.write() as tx:
        assert len(board.board.notices._take(tx)) == 1  # and here it dies
    board.at(120)
    assert board.board.notices.look() == 0
    board.at(400)
    board.board.notices.look()
    assert [it["status"] for it in told(board)] == [status]
    assert len(receiver.requests) == calls


def test_a_channel_that_is_out_is_tried_again_with_the_same_message(working: OpenWorking, receiver: Receiver) -> None:
    board = working(start=False)
    board.type(use="echo")
    route(board, receiver, "p0_arrived", kind="webhook")
    urgent(board, "T-1")
    receiver.reply(Reply(503), Reply(429, headers={"Retry-After": "90"}), Reply())
    board.board.notices.look()
    urgent(board, "T-2")
    assert [it["status"] for it in told(board)] == ["waiting"]
    for seconds in (61, 200):
        board.at(seconds)
        board.board.notices.look()
    assert len({it.headers["webhook-id"] for it in receiver.requests}) == 1
    assert len({it.body for it in receiver.requests}) == 1
    assert [it["status"] for it in told(board)] == ["sent", "waiting"]
    assert [it["tries"] for it in told(board)] == [3, 0]


def test_a_refusal_that_stays_is_shown_and_not_repeated(working: OpenWorking, receiver: Receiver) -> None:
    board = working(start=False)
    board.type(use="echo")
    route(board, receiver, "p0_arrived")
    urgent(board, "T-1")
    receiver.reply(Reply(body=b'{"errcode":93000,"errmsg":"invalid webhook url"}'))
    board.board.notices.look()
    [notice] = told(board)
    assert notice["status"] == "failed"
    assert "93000" in notice["last_error"]


def test_those_are_told_whom_it_concerns(working: OpenWorking, receiver: Receiver) -> None:
    board = working(start=False)
    with board.board.db.write() as tx:
        for name in ("sales", "support"):
            groups.add(tx, name)
        for email in ("li@example.org", "wang@example.org"):
            users.add(tx, email)
        groups.join(tx, "sales", "li@example.org")
    board.type(use="none", review={"reviewers": ["sales"]})
    made = {
        name: route(board, receiver, "review_asked", audience=name)
        for name in ("sales", "support", "li@example.org", "wang@example.org", "*")
    }
    board.submit("T-1")
    with board.board.db.write() as tx:
        row = board.task("T-1")
        board.board.noting.of_tasks(tx, [(noting.Kind.REVIEW_ASKED, row)])
    board.board.notices.look()
    heard = {it["route"] for it in told(board)}
    assert heard == {made["sales"], made["li@example.org"], made["*"]}


def test_the_leader_tells_of_reviews_failures_and_missed_deadlines(working: OpenWorking, receiver: Receiver) -> None:
    async def fail(_job: Any) -> Any:
        from board.ports import Cause, ErrorClass, Failure

        return Failure(ErrorClass.PERMANENT, Cause.UPSTREAM_4XX, "No such customer.")

    board = working(Probe(fail), start=False)
    board.type("broken")
    board.type("ask", use="none")
    for kind in ("review_asked", "failed"):
        receiver.default = OK
        board.apply(connections=[{"name": kind, "kind": "wecom", "url": f"{receiver.url}/{kind}?key=x"}])
        wish = RouteIn.model_validate({"audience": "*", "about": [kind], "connection": kind})
        with board.board.db.write() as tx:
            routing.make(tx, wish, ROOT, board.board.notifiers, zone="UTC", lang="zh_CN")
    board.submit("T-1", type="broken")
    board.submit("T-2", type="ask")
    board.start()
    receiver.wait_for(2, 30)
    board.stop()
    by_path = {it.path: it.body.decode() for it in receiver.requests}
    assert "No such customer." in by_path["/failed?key=x"]
    assert "/reviews/" in by_path["/review_asked?key=x"]


@pytest.mark.parametrize(
    ("moment", "until"),
    [
        ("2026-12-01T13:59:00", "2026-12-01T13:59:00"),  # 21:59 in Shanghai
        ("2026-12-01T14:00:00", "2026-12-01T23:00:00"),  # 22:00
        ("2026-12-01T22:59:00", "2026-12-01T23:00:00"),  # 06:59
        ("2026-12-01T23:00:00", "2026-12-01T23:00:00"),  # 07:00
    ],
)
def test_quiet_hours_end_in_the_zone_of_the_route(moment: str, until: str) -> None:
    quiet = {"quiet_from": "22:00", "quiet_to": "07:00", "zone": "Asia/Shanghai"}
    at = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    assert quiet_until(quiet, at) == datetime.fromisoformat(until).replace(tzinfo=UTC)


def test_in_quiet_hours_nothing_is_sent(working: OpenWorking, receiver: Receiver) -> None:
    board = working(start=False)
    board.type(use="echo")
    made = route(board, receiver, "p0_arrived", quiet={"from": "00:00", "to": "23:59"})
    urgent(board, "T-1")
    if datetime.now(UTC).strftime("%H:%M") == "23:59":
        board.at(120)
    assert board.board.notices.look() == 0
    assert [it["status"] for it in told(board)] == ["waiting"]
    board.at(86_400)
    with board.board.db.write() as tx:
        tx.execute(routes.update().where(routes.c.id == made).values(quiet_from=None))
    assert board.board.notices.look() == 1


def test_a_review_in_ones_own_mailbox_opens_without_a_sign_in_where_one_may_decide(
    working: OpenWorking,
) -> None:
    board = working(start=False)
    post = {"name": "post", "kind": "mail", "url": "smtps://mail.example.org", "sender": "board@example.org"}
    board.type("ask", use="none")
    board.submit("T-1", type="ask")
    board.start()
    board.wait("T-1", "needs_review")
    board.stop()
    board.apply(connections=[post])
    with board.board.db.write() as tx:
        users.add(tx, "li@example.org", "reviewer")
        users.add(tx, "guest@example.org", "viewer")
        for name in ("li@example.org", "guest@example.org"):
            wish = RouteIn.model_validate({"audience": name, "about": ["review_asked"], "connection": "post"})
            routing.make(tx, wish, ROOT, board.board.notifiers, zone="UTC", lang="en")
        board.board.noting.of_tasks(tx, [(noting.Kind.REVIEW_ASKED, board.task("T-1"))])
        gather_some(tx, board.board.catalogue)
    with board.board.db.write() as tx:
        due = board.board.notices._take(tx)
    by_person = {it.message.to: it.message.link for it in due}
    assert "/r/" in by_person["li@example.org"]
    assert "/reviews/" in by_person["guest@example.org"]
