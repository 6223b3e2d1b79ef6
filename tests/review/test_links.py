"""Review links: whom they are made for, how long they are good, and what can be done by them."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from board.access import groups, users
from board.access.errors import AccessError
from board.access.rights import CONSOLE, person_actor
from board.db.clock import read_now
from board.review.by_link import BadSeal, LinkVoid, PageUsed
from board.review.decide import DecisionRefused
from board.review.links import LEAST, LONGEST, Issued
from board.review.models import review_links
from board.review.policy import NotEligible
from board.review.verdict import Verdict
from tests.review.deciding import reviewed
from tests.rig.working import OpenWorking, WorkingBoard

APPROVE, REJECT = Verdict("approve"), Verdict("reject", reason_class="wrong")
MORE_THAN_AN_HOUR = 3601.0


def person(board: WorkingBoard, name: str = "li", role: str = "reviewer") -> int:
    with board.board.db.write() as tx:
        found = users.find_by_email(tx, f"{name}@example.org") or users.add(tx, f"{name}@example.org", role)
    return found.id


def issue(board: WorkingBoard, name: str = "li", **more: Any) -> Issued:
    user = person(board, name)
    with board.board.db.write() as tx:
        return board.board.review_links.issue(tx, int(board.reviews()[-1]["id"]), user, **more)


def token(link: Issued) -> str:
    return link.url.rpartition("/")[2]


def seal(board: WorkingBoard, link: Issued) -> str:
    """Of a page that is opened now."""
    with board.board.db.read() as connection:
        return board.board.by_link.seal(connection, board.board.by_link.open(connection, token(link)))


def decide(board: WorkingBoard, link: Issued, verdict: Verdict = APPROVE, by: str | None = None) -> None:
    sealed = seal(board, link) if by is None else by
    with board.board.db.write() as tx:
        board.board.by_link.decide(tx, token(link), sealed, verdict)


def undo(board: WorkingBoard, link: Issued, by: str | None = None) -> None:
    sealed = seal(board, link) if by is None else by
    with board.board.db.write() as tx:
        board.board.by_link.undo(tx, token(link), sealed)


def is_void(board: WorkingBoard, link: Issued) -> bool:
    try:
        with board.board.db.read() as connection:
            board.board.by_link.open(connection, token(link))
    except LinkVoid:
        return True
    return False


def row(board: WorkingBoard) -> Any:
    return board.reviews()[-1]


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    opened = working()
    reviewed(opened, grace="60s")
    return opened


def test_it_decides_as_its_person_by_the_channel_link(board: WorkingBoard) -> None:
    link = issue(board)
    assert link.url.startswith("http://127.0.0.1:8000/r/")
    decide(board, link)
    assert (row(board)["decider"], row(board)["channel"], row(board)["verdict"]) == (
        "user:li@example.org",
        "link",
        "approve",
    )
    undo(board, link)
    assert (row(board)["status"], board.task()["status"]) == ("open", "needs_review")
    decide(board, link, REJECT)
    assert board.task()["status"] == "cancelled"


def test_no_token_is_kept_anywhere(board: WorkingBoard, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    link = issue(board, by=CONSOLE.by("cli"))
    decide(board, link)
    with board.board.db.read() as connection:
        kept = connection.execute(select(review_links.c.token_hash)).scalars().all()
    assert [len(text) for text in kept] == [64]
    assert token(link) not in board.dump() + repr(kept) + caplog.text
    assert "link_made" in board.kinds()


def test_until_when_it_is_good(working: OpenWorking) -> None:
    board = working()
    for name, due, expected in (
        ("none", None, LONGEST),
        ("soon", "4h", timedelta(hours=4)),
        ("now", "1m", LEAST),
        ("late", "200h", LONGEST),
    ):
        board.type(name, "echo", review={"when": "always"} | ({"due": due} if due else {}))
        board.submit(name, name)
        board.wait(name, "needs_review")
        user = person(board)
        with board.board.db.write() as tx:
            moment = read_now(tx)
            link = board.board.review_links.issue(tx, int(board.reviews(name)[-1]["id"]), user)
        assert abs(link.expires_at - moment - expected) < timedelta(minutes=1), name


def test_it_is_void_after_its_time_when_withdrawn_and_when_its_person_may_not_decide(board: WorkingBoard) -> None:
    db, later, withdrawn, kept = board.board.db, issue(board), issue(board), issue(board)
    li, review = person(board), int(row(board)["id"])
    with db.write() as tx:
        for _ in range(2):  # twice is once
            board.board.review_links.revoke(tx, review, withdrawn.id, CONSOLE.by("cli"))
    assert board.kinds().count("link_revoked") == 1
    assert (is_void(board, withdrawn), is_void(board, kept)) == (True, False)
    with db.write() as tx:
        users.set_role(tx, li, "viewer")
    assert is_void(board, kept)
    with db.write() as tx:
        users.set_role(tx, li, "reviewer")
        users.disable(tx, li)
    assert is_void(board, kept)
    with db.write() as tx:
        users.enable(tx, li)
    assert not is_void(board, kept)
    board.at(LONGEST.total_seconds() + 1)
    assert is_void(board, later)
    with pytest.raises(LinkVoid):
        decide(board, later, by="x")
    assert row(board)["status"] == "open"


def test_it_is_void_once_its_person_has_left_the_group_that_decides(working: OpenWorking) -> None:
    board = working()
    li = person(board)
    with board.board.db.write() as tx:
        groups.add(tx, "sales")
        groups.join(tx, "sales", "li@example.org")
    reviewed(board, reviewers=["sales"])
    link, review = issue(board), int(row(board)["id"])
    assert not is_void(board, link)
    with board.board.db.write() as tx:
        groups.leave(tx, "sales", "li@example.org")
    assert is_void(board, link)
    with pytest.raises(NotEligible), board.board.db.write() as tx:
        board.board.review_links.issue(tx, review, li)


@pytest.mark.parametrize("wrong", ["", "x", "A" * 43, "A" * 44, "../etc", "é" * 43, "A" * 42 + "\x00"])
def test_a_token_that_was_never_given_out_opens_nothing(board: WorkingBoard, wrong: str) -> None:
    with board.board.db.read() as connection, pytest.raises(LinkVoid):
        board.board.by_link.open(connection, wrong)


def test_whom_a_link_is_made_for(board: WorkingBoard) -> None:
    review, db = int(row(board)["id"]), board.board.db
    viewer, disabled = person(board, "viewer", "viewer"), person(board, "gone")
    with db.write() as tx:
        users.disable(tx, disabled)
    for user, error in ((viewer, NotEligible), (disabled, AccessError), (987_654, AccessError)):
        with pytest.raises(error), db.write() as tx:
            board.board.review_links.issue(tx, review, user)
    with pytest.raises(DecisionRefused, match="no such review"), db.write() as tx:
        board.board.review_links.issue(tx, 987_654, viewer)
    board.cancel("T-1")
    with pytest.raises(DecisionRefused, match="closed without"):
        issue(board)
    with db.read() as connection:
        assert connection.execute(select(review_links.c.id)).all() == []


@pytest.mark.parametrize("risk", ["medium", "high"])
def test_more_than_a_low_risk_takes_a_sign_in(working: OpenWorking, risk: str) -> None:
    board = working()
    reviewed(board, risk=risk)
    link = issue(board)
    with board.board.db.read() as connection:
        opened = board.board.by_link.open(connection, token(link))
    assert (opened.offered, opened.why) == ((), "sign_in")
    with pytest.raises(NotEligible, match="sign in"):
        decide(board, link)
    board.decide("T-1", "reject", person_actor("li@example.org", "reviewer"))
    with pytest.raises(NotEligible, match="sign in"):
        undo(board, link)
    assert row(board)["status"] == "decided"


def test_a_seal_is_good_for_its_own_link_one_act_and_what_it_showed(board: WorkingBoard) -> None:
    mine, other = issue(board), issue(board, "anna")
    first, again = seal(board, mine), seal(board, mine)
    assert first != again
    for wrong in ("", "x", seal(board, other), first[:-4] + "AAAA", board.board.vault.encrypt("link 1 0 1")):
        with pytest.raises(BadSeal):
            decide(board, mine, by=wrong)
    decide(board, mine, by=first)
    decide(board, mine, by=first)  # pressed twice: the same decision
    decide(board, mine, by=again)
    with pytest.raises(DecisionRefused, match="already approved"):
        decide(board, mine, REJECT, by=first)
    undone = seal(board, mine)
    undo(board, mine, by=undone)
    with pytest.raises(PageUsed):
        undo(board, mine, by=undone)
    with pytest.raises(DecisionRefused, match="changed meanwhile"):
        decide(board, mine, by=first)  # from the page before the undo
    assert row(board)["status"] == "open"


def test_an_approval_that_was_taken_back_is_not_given_again_by_the_old_page(working: OpenWorking) -> None:
    board = working()
    reviewed(board, approvals=2)
    link = issue(board)
    old = seal(board, link)
    decide(board, link, by=old)
    with board.board.db.read() as connection:
        assert board.board.by_link.open(connection, token(link)).why == "approved"
    undo(board, link)
    with pytest.raises(PageUsed):
        decide(board, link, by=old)
    assert "approval_given" in board.kinds()
    assert board.kinds().count("approval_given") == 1
    decide(board, link)
    decide(board, issue(board, "anna"))
    assert row(board)["status"] == "decided"


def test_what_changed_after_the_page_was_shown_is_not_decided_by_it(board: WorkingBoard) -> None:
    link = issue(board)
    old = seal(board, link)
    with board.board.db.write() as tx:
        task = board.board.ledger.lock(tx, board.task()["id"])
        by = person_actor("anna@example.org", "operator").by("web")
        details = {"title": {"from": task["title"], "to": "Another"}}
        board.board.ledger.edit(tx, task, by, changes={"title": "Another"}, data={}, details=details)
    with pytest.raises(DecisionRefused, match="changed meanwhile"):
        decide(board, link, by=old)
    assert row(board)["status"] == "open"
    decide(board, link)


def test_two_persons_with_a_link_each_at_the_same_time(board: WorkingBoard) -> None:
    links = [issue(board, "li"), issue(board, "anna")]
    verdicts = [APPROVE, REJECT]
    pages = [seal(board, link) for link in links]

    def press(number: int) -> str:
        try:
            decide(board, links[number], verdicts[number], by=pages[number])
        except DecisionRefused as error:
            return error.code
        return "made"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(press, range(2))) == ["already_decided", "made"]
    assert len([kind for kind in board.kinds() if kind in ("approved", "rejected")]) == 1


def test_a_double_click_at_the_same_moment_is_one_decision(board: WorkingBoard) -> None:
    link = issue(board)
    page = seal(board, link)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: decide(board, link, by=page), range(2)))
    assert board.kinds().count("approved") == 1
    with board.board.db.read() as connection:
        assert connection.execute(select(review_links.c.acts)).scalar() == 1


def test_an_opening_is_told_once_an_hour(board: WorkingBoard) -> None:
    link, by_link = issue(board), board.board.by_link

    def note() -> None:
        with board.board.db.read() as connection:
            opened = by_link.open(connection, token(link))
        by_link.note(board.board.db, opened)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: note(), range(20)))
    assert board.kinds().count("link_opened") == 1
    board.at(MORE_THAN_AN_HOUR)
    note()
    note()
    assert board.kinds().count("link_opened") == 2
    event = next(event for event in board.events() if event["kind"] == "link_opened")
    assert (event["actor_kind"], event["data"]["user"]) == ("system", "user:li@example.org")
