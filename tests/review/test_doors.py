"""Every way to decide a review keeps to every rule: the same answer at each door, or the difference that is meant.

The doors: a decision over the API, the shorthand on the task, many at once over the API, the review's page, many at
once on the page, and a link. Each row of the tables brings a review under one rule to each of them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import insert
from starlette.testclient import TestClient

from board.access import groups, keys, users
from board.access.rights import Actor, key_actor, person_actor
from board.access.tokens import digest
from board.db.clock import now
from board.ports import Cause, ErrorClass, Failure, Job, Outcome, UnknownOutcome
from board.review import overdue
from board.review.by_link import LinkVoid
from board.review.models import review_links
from board.review.policy import VERDICTS, Reason
from board.web.wording import APART, REFUSED
from tests.rig.working import OpenWorking, Probe, WorkingBoard
from tests.web.conftest import ORIGIN, Site, Visitor

LI, KEY = person_actor("li@example.org", "reviewer"), key_actor("desk", ["review"])
ANNA = person_actor("anna@example.org", "reviewer")
HOUR = 3600.0
DAY = 86400.0
# What a refusal says on a page, and the word that the API has for it.
WORDS = {
    "reviewers, operators and owners may": "role",
    "Your role does not allow this": "role",
    "Who may:": "reviewers",
    "does not decide about it": "four_eyes",
    "to decide it, sign in": "sign_in",
    "This answer is not offered here": "verdict_not_offered",
    "This review is no longer open": "already_decided",
    "has changed meanwhile": "review_changed",
    "A colleague has taken this review": "claimed",
}
TYPED = {"instruction": "Again.", "reason": "Because.", "reason_class": "other"}


class Doors:
    """One board with its API and pages. Persons decide on pages and by links, a key over the API."""

    def __init__(self, board: WorkingBoard) -> None:
        self.board, self.site = board, Site(board)
        self.li: Visitor = self.site.visitor("reviewer", "li")
        with board.board.db.write() as tx:
            secret = keys.create(tx, "desk", ["review"])
            reader = keys.create(tx, "reader", ["read"])
        self.key, self.reader = self._api(secret), self._api(reader)
        self.viewer = self.site.visitor("viewer", "viewer")

    def _api(self, secret: str) -> TestClient:
        return TestClient(self.site.app, base_url=ORIGIN, headers={"X-API-Key": secret})

    def actor(self, door: str) -> Actor:
        return KEY if door in ("api", "shorthand", "bulk over the api") else LI

    def knock(self, door: str, task_id: str, verdict: str = "approve", *, without_role: bool = False) -> str:
        """Try to decide; what came of it: decided, counted, repeated, or why not. What is refused changes nothing."""
        before = self._state(task_id)
        key, person = (self.reader, self.viewer) if without_role else (self.key, self.li)
        review = before[1][-1]
        said = {
            "api": lambda: self._by_api(key, f"/reviews/{review['id']}/decision", review, verdict),
            "shorthand": lambda: self._by_api(key, f"/tasks/{task_id}/{verdict}", review, ""),
            "bulk over the api": lambda: self._bulk_by_api(key, review),
            "page": lambda: self._by_page(person, review, verdict),
            "bulk on the page": lambda: self._bulk_by_page(person, review),
            "link": lambda: self._by_link(person, review, verdict),
        }[door]()
        after = self._state(task_id)
        if said != "":
            assert after == before, f"{door}: refused with {said}, and yet something has changed"
            return said
        if after == before:
            return "repeated"
        return "counted" if after[1][-1]["status"] == "open" else "decided"

    def _state(self, task_id: str) -> Any:
        """All of it but that somebody has opened a link."""
        kinds = [kind for kind in self.board.kinds(task_id) if kind != "link_opened"]
        return {**self.board.task(task_id), "event_seq": len(kinds)}, self.board.reviews(task_id), kinds

    def content(self, review: Any) -> str:
        with self.board.board.db.read() as connection:
            return self.board.board.decisions.content(connection, review["task"])

    def _by_api(self, client: TestClient, path: str, review: Any, verdict: str) -> str:
        typed = {"instruction": "Again.", "reason": "Because.", "reason_class": "other"}
        body = typed | {"version": review["version"], "content_hash": self.content(review)}
        answer = client.post(f"/api/v1{path}", json=body | ({"verdict": verdict} if verdict else {}))
        if answer.status_code == 200:
            return ""
        error = answer.json()
        return str(error["details"][0]["why"]) if error["code"] == "not_eligible" else str(error["code"])

    def _bulk_by_api(self, client: TestClient, review: Any) -> str:
        at, number = "/api/v1/reviews/bulk-decision", str(review["id"])
        shown = client.post(f"{at}/preview", json={"ids": [number]}).json()
        if "code" in shown:
            return str(shown["details"][0]["why"])
        pin = {"id": number, "version": review["version"], "content_hash": self.content(review)}
        made = client.post(at, json={"verdict": "approve", "reviews": [pin]}).json()  # whatever the preview has said
        if shown["left_out"]:
            assert made["data"][0]["status"] in ("refused", "repeated")
            return str(shown["left_out"][0]["code"])
        return "" if made["data"][0]["status"] in ("approved", "repeated") else str(made["data"][0]["code"])

    def _by_page(self, person: Visitor, review: Any, verdict: str) -> str:
        pins = {"version": str(review["version"]), "content_hash": self.content(review)}
        return _said(person.post(f"/reviews/{review['id']}/decision", verdict=verdict, **pins, **TYPED))

    def _bulk_by_page(self, person: Visitor, review: Any) -> str:
        shown = person.get(f"/bulk?r={review['id']}")
        if shown.status_code != 200:
            return _said(shown)
        pin = f"{review['id']}:{review['version']}:{self.content(review)}"
        report = html.unescape(person.post("/bulk", pin=pin).text)  # whatever the preview has said
        if pin in shown.text:
            return next((code for code, words in REFUSED.items() if words in report), "")
        text = html.unescape(shown.text)
        return next(code for code, words in APART.items() if words in text)

    def _by_link(self, person: Visitor, review: Any, verdict: str) -> str:
        """A link that is there however it was made; the form is sent whether the page offers it or not."""
        token = f"{review['id']:043d}"
        with self.board.board.db.write() as tx:
            user = users.find_by_email(tx, person.email)
            assert user is not None
            row = {"token_hash": digest(token), "review": review["id"], "user": user.id, "purpose": "test", "acts": 0}
            if not self._opens(tx, token):
                tx.execute(insert(review_links).values(row | {"created_at": now(), "expires_at": now(DAY)}))
        stranger = self.site.stranger()
        page = stranger.get(f"/r/{token}")
        if page.status_code == 410:
            assert stranger.client.post(f"/r/{token}/decision", data={"verdict": verdict}).status_code == 410
            return "void"
        with self.board.board.db.read() as connection:
            by_link = self.board.board.by_link
            seal = by_link.seal(connection, by_link.open(connection, token))
        return _said(stranger.client.post(f"/r/{token}/decision", data={"verdict": verdict, "seal": seal, **TYPED}))

    def _opens(self, connection: Any, token: str) -> bool:
        try:
            return bool(self.board.board.by_link.open(connection, token))
        except LinkVoid:
            return False


def _said(answer: Any) -> str:
    if answer.status_code == 303:
        return ""
    text = html.unescape(re.sub(r"\s+", " ", answer.text))
    return next(code for words, code in WORDS.items() if words in text)


DOORS = ("api", "shorthand", "bulk over the api", "page", "bulk on the page", "link")
BULK = ("bulk over the api", "bulk on the page")
Setup = Callable[[WorkingBoard, str, Actor], None]


def _nothing(board: WorkingBoard, task_id: str, actor: Actor) -> None:
    pass


def _changed_by_him(board: WorkingBoard, task_id: str, actor: Actor) -> None:
    with board.board.db.write() as tx:
        task = board.board.ledger.lock(tx, board.task(task_id)["id"])
        details = {"title": {"from": task["title"], "to": "Another"}}
        board.board.ledger.edit(tx, task, actor.by("web"), changes={"title": "Another"}, data={}, details=details)


def _approved_by_anna(board: WorkingBoard, task_id: str, actor: Actor) -> None:
    board.decide(task_id, "approve", ANNA)


def _approved_by_him(board: WorkingBoard, task_id: str, actor: Actor) -> None:
    board.decide(task_id, "approve", actor)


def _rejected_by_anna(board: WorkingBoard, task_id: str, actor: Actor) -> None:
    board.decide(task_id, "reject", ANNA)


def _taken_by_anna(board: WorkingBoard, task_id: str, actor: Actor) -> None:
    with board.board.db.write() as tx:
        board.board.holding.claim(tx, board.reviews(task_id)[-1]["id"], ANNA, "web", note=None)


def _too_late(board: WorkingBoard, task_id: str, actor: Actor) -> None:
    board.at(HOUR + 1)
    rooms = board.board
    overdue.look(rooms.db, rooms.ledger, rooms.catalogue, rooms.decisions)


def _in_sales(board: WorkingBoard, task_id: str, actor: Actor) -> None:
    with board.board.db.write() as tx:
        if "sales" not in groups.list_groups(tx):
            groups.add(tx, "sales")
        groups.join(tx, "sales", actor.name if actor.kind == "person" else actor.identity)


def _out_of_sales(board: WorkingBoard, task_id: str, actor: Actor) -> None:
    _in_sales(board, task_id, actor)
    with board.board.db.write() as tx:
        groups.leave(tx, "sales", actor.name if actor.kind == "person" else actor.identity)


BOTH = ["key:desk", "li@example.org"]
APART_BULK = dict.fromkeys(BULK, "not_eligible")
SEVERAL = dict.fromkeys(BULK, "several")
RISKY = dict.fromkeys(BULK, "risk") | {"link": "sign_in"}
NOT_OPEN = dict.fromkeys(BULK, "not_open")
# The rule, what the type says, what happens before, what every door answers, and which ones answer otherwise.
RULES: list[tuple[str, dict[str, Any], Setup, str, dict[str, str]]] = [
    ("no rule", {}, _nothing, "decided", {}),
    ("role", {}, _nothing, "role", {"link": "void"}),
    ("named", {"reviewers": BOTH}, _nothing, "decided", {}),
    ("not named", {"reviewers": ["x@example.org"]}, _nothing, "reviewers", APART_BULK | {"link": "void"}),
    ("in the group", {"reviewers": ["sales"]}, _in_sales, "decided", {}),
    ("left the group", {"reviewers": ["sales"]}, _out_of_sales, "reviewers", APART_BULK | {"link": "void"}),
    ("four eyes", {"four_eyes": True}, _nothing, "decided", {}),
    ("four eyes, his own", {"four_eyes": True}, _changed_by_him, "four_eyes", APART_BULK | {"link": "void"}),
    ("first of two", {"approvals": 2}, _nothing, "counted", SEVERAL),
    ("second of two", {"approvals": 2}, _approved_by_anna, "decided", SEVERAL),
    ("both of two", {"approvals": 2}, _approved_by_him, "repeated", SEVERAL),
    ("expired", {"due": "1h", "on_expire": "cancel"}, _too_late, "already_decided", NOT_OPEN),
    ("decided", {}, _rejected_by_anna, "already_decided", NOT_OPEN),
    ("taken", {}, _taken_by_anna, "claimed", {}),
    ("medium risk", {"risk": "medium"}, _nothing, "decided", RISKY),
    ("high risk", {"risk": "high"}, _nothing, "decided", RISKY),
    ("risk by template", {"risk": "{{ payload.risk }}"}, _nothing, "decided", RISKY),
]


@pytest.mark.parametrize(("rule", "review", "setup", "expected", "others"), RULES, ids=[row[0] for row in RULES])
def test_every_rule_at_every_door(
    working_sqlite: OpenWorking, rule: str, review: dict[str, Any], setup: Setup, expected: str, others: dict[str, str]
) -> None:
    board = working_sqlite()
    board.type("letter", "echo", review={"when": "always", "grace": "60s"} | review)
    doors = Doors(board)
    for door in DOORS:
        board.submit(door, "letter", payload={"risk": "high"})
    for door in DOORS:
        board.wait(door, "needs_review")
    board.stop()  # what is decided stays as it is
    for door in DOORS:
        setup(board, door, doors.actor(door))
    found = {door: doors.knock(door, door, without_role=rule == "role") for door in DOORS}
    assert found == dict.fromkeys(DOORS, expected) | others


async def _ends(job: Job) -> Outcome:
    if job.payload["ends"] == "failed":
        return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, "Not possible.")
    return UnknownOutcome("The answer was lost.")


# By what a review of this reason comes about. The verdicts of the others are those of `policy`; one that waits for a
# form is decided in tests/web/test_outside_form.py.
OPENED: dict[Reason, tuple[str, dict[str, Any]]] = {
    Reason.POLICY: ("letter", {}),
    Reason.DIRECT: ("direct", {}),
    Reason.PERMANENT_FAILURE: ("trial", {"ends": "failed"}),
    Reason.UNKNOWN_OUTCOME: ("trial", {"ends": "unknown"}),
}
ANSWERS = sorted({verdict for offered in VERDICTS.values() for verdict in offered} - {"answer"})


@pytest.mark.parametrize("reason", OPENED, ids=str)
def test_every_verdict_at_every_door(working_sqlite: OpenWorking, reason: Reason) -> None:
    """The shorthand has an address for three of them; many at once are only ever approved."""
    board = working_sqlite(Probe(_ends, side_effects=True))
    board.type("letter", "echo", review={"when": "always"})
    board.type("direct", "none")
    board.type("trial", retry={"max": 0, "on_permanent": "needs_review"})
    doors = Doors(board)
    type_, payload = OPENED[reason]
    tries = [(door, verdict) for door in DOORS for verdict in ANSWERS]
    tries = [it for it in tries if it[0] not in BULK or it[1] == "approve"]
    tries = [it for it in tries if it[0] != "shorthand" or it[1] in ("approve", "revise", "reject")]
    names = {each: f"{each[0]} {each[1]}" for each in tries}
    for name in names.values():
        board.submit(name, type_, payload=payload)
    for name in names.values():
        board.wait(name, "needs_review")
        assert board.reviews(name)[-1]["reason"] == reason
    board.stop()  # what is decided stays as it is
    for (door, verdict), name in names.items():
        offered = verdict in VERDICTS[reason]
        refused = "not_offered" if door in BULK else "verdict_not_offered"
        expected = "decided" if offered else refused
        if door == "link" and reason == Reason.UNKNOWN_OUTCOME:
            expected = "sign_in"
        assert doors.knock(door, name, verdict) == expected, (door, verdict)
