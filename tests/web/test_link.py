"""The pages behind review links: what scanners, other people and other sites can do there, and what its person can."""

import re
from typing import Any

import pytest
from httpx2 import Response
from playwright.sync_api import Page, expect

from board.access import users
from board.access.rights import person_actor
from board.web.link import MOST_VOID
from tests.web.conftest import ORIGIN, Site, Visitor
from tests.web.test_accessibility import axe, findings  # noqa: F401
from tests.web.test_attachments import PNG, kept

LONG = "很" * 10_000


def made(site: Site, review: int, name: str = "li", role: str = "reviewer") -> str:
    """The path of a fresh link for a person."""
    email = f"{name}@example.org"
    with site.working.board.db.write() as tx:
        person = users.find_by_email(tx, email) or users.add(tx, email, role)
        return site.working.board.review_links.issue(tx, review, person.id).url.removeprefix(ORIGIN)


def fields(page: str, verdict: str = "approve") -> dict[str, str]:
    """What the form for this verdict sends by itself; `undo` is the one that takes back."""
    for form in re.findall(r"<form[^>]*action=\"/r/.*?</form>", page, re.S):
        found = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))
        if found.get("verdict", "undo") == verdict:
            return found
    raise AssertionError(f"the page offers no form for {verdict}")


def press(visitor: Visitor, path: str, verdict: str = "approve", page: str = "", **typed: str) -> Response:
    """Open the page, fill in a form of it and send it, as a browser does that tells no origin."""
    sent = fields(page or visitor.get(path).text, verdict) | typed
    step = "undo" if verdict == "undo" else "decision"
    return visitor.client.post(f"{path}/{step}", data=sent, headers={"Origin": "null"})


@pytest.fixture
def li(site: Site) -> Visitor:
    """Not signed in anywhere."""
    return site.stranger()


def state(site: Site) -> Any:
    board = site.working
    return (board.task(), board.reviews(), [event for event in board.events() if event["kind"] != "link_opened"])


def test_a_thousand_openings_change_nothing_and_are_told_once(site: Site, li: Visitor) -> None:
    """B071: mail scanners and previews open every address, whatever the method and the headers."""
    path = made(site, site.review())
    before = state(site)
    scanner = site.stranger()
    headers = [{"Sec-Purpose": "prefetch"}, {"Purpose": "prefetch"}, {"User-Agent": "SafeLinks"}]
    for n in range(30):
        assert scanner.get(path, headers=headers[n % 3]).status_code == 200
        assert scanner.client.head(path).status_code == 200
        assert scanner.get(f"{path}/decision").status_code == 303
        assert scanner.get(f"{path}/undo?verdict=approve").status_code == 303
    after = state(site)
    assert after[1:] == before[1:]
    assert after[0]["version"] == before[0]["version"]
    assert site.working.kinds().count("link_opened") == 1
    assert press(li, path).status_code == 303  # and the person comes in time
    assert site.working.reviews()[-1]["verdict"] == "approve"


def test_the_page_says_nothing_to_others_and_stays_in_no_cache(site: Site, li: Visitor) -> None:
    path = made(site, site.review())
    answer = li.get(path)
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert "noindex" in answer.headers["x-robots-tag"]
    assert "set-cookie" not in answer.headers
    assert "<script" not in answer.text
    assert "Title of T-1" not in answer.text.partition("</title>")[0]
    assert len(answer.content) < 40_000  # of 100 kB with styles
    assert li.client.head(path).content == b""


def test_deciding_undoing_and_the_record(site: Site, li: Visitor) -> None:
    path = made(site, site.review())
    answer = press(li, path)
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    record = li.get(path)
    assert record.status_code == 200
    assert "Approved" in record.text
    assert "li@example.org" in record.text
    assert "Title of T-1" not in record.text
    undone = record.text
    assert press(li, path, "undo", page=undone).status_code == 303
    assert press(li, path, "undo", page=undone).status_code == 303  # a second click
    assert site.working.task()["status"] == "needs_review"
    assert press(li, path, "reject", reason_class="wrong", reason="No").status_code == 303
    assert site.working.reviews()[-1]["channel"] == "link"
    assert site.working.task()["status"] == "cancelled"
    assert "Wrong" in li.get(path).text


def test_a_double_click_shows_the_record(site: Site, li: Visitor) -> None:
    """B069"""
    path = made(site, site.review())
    page = li.get(path).text
    assert [press(li, path, page=page).status_code for _ in range(3)] == [303, 303, 303]
    assert site.working.kinds().count("approved") == 1


def test_a_colleague_was_quicker(site: Site, li: Visitor) -> None:
    review = site.review()
    path, other = made(site, review), made(site, review, "anna")
    page = li.get(path).text
    press(site.stranger(), other, "reject", reason_class="wrong")
    answer = press(li, path, "revise", page=page, instruction="My words")
    assert answer.status_code == 409
    assert "anna@example.org" in answer.text
    assert "My words" in answer.text
    assert "anna@example.org" in li.get(path).text


def test_void_links_all_say_the_same_and_name_nothing(site: Site, li: Visitor) -> None:
    review = site.review()
    path, kept = made(site, review), made(site, review, "anna")
    page = li.get(path).text
    with site.working.board.db.write() as tx:
        users.disable(tx, users.find_by_email(tx, "li@example.org").id)  # type: ignore[union-attr]
    gone, never = li.get(path), li.get("/r/" + "A" * 43)
    assert (gone.status_code, gone.text) == (never.status_code, never.text)
    assert gone.status_code == 410
    assert "not good" in gone.text
    assert "T-1" not in gone.text
    late = press(li, path, "revise", page=page, instruction="My words")
    assert late.status_code == 410
    assert "My words" in late.text
    assert "T-1" not in late.text
    assert li.get(path + "/files/file_x").status_code == 410
    assert li.get(kept).status_code == 200
    assert li.get("/r/short?lang=zh_CN").text.count("此链接无效") >= 1


def test_without_the_seal_of_a_page_nothing_is_decided(site: Site, li: Visitor) -> None:
    review = site.review()
    path, other = made(site, review), made(site, review, "anna")
    seal = fields(li.get(path).text)["seal"]
    wrong = fields(li.get(other).text)["seal"]
    for given in ({}, {"seal": ""}, {"seal": "x"}, {"seal": wrong}, {"seal": seal[:-3] + "AAA"}):
        data = {"verdict": "revise", "instruction": "My words"} | given
        answer = li.client.post(f"{path}/decision", data=data)
        assert answer.status_code == 403
        assert "My words" in answer.text
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site", "Origin": "null"}):
        data = {"verdict": "approve", "seal": seal}
        assert li.client.post(f"{path}/decision", data=data, headers=headers).status_code == 403
    assert li.client.post(f"{path}/decision", json={"verdict": "approve", "seal": seal}).status_code == 415
    assert site.working.reviews()[-1]["status"] == "open"
    assert press(li, path).status_code == 303


def test_what_has_changed_is_looked_at_again(site: Site, li: Visitor) -> None:
    path = made(site, site.review())
    page = li.get(path).text
    board = site.working.board
    with board.db.write() as tx:
        task, by = (
            board.ledger.lock(tx, site.working.task()["id"]),
            person_actor("anna@example.org", "operator").by("web"),
        )
        board.ledger.edit(tx, task, by, changes={"title": "Another title"}, data={}, details={"title": {}})
    answer = press(li, path, "revise", page=page, instruction=LONG)
    assert answer.status_code == 409
    assert LONG in answer.text
    assert "Another title" in answer.text
    assert press(li, path, "revise", page=answer.text, instruction=LONG).status_code == 303


@pytest.mark.parametrize("risk", ["medium", "high"])
def test_more_than_a_low_risk_is_shown_and_decided_signed_in(site: Site, li: Visitor, risk: str) -> None:
    site.working.type("judge", "echo", review={"when": "always", "risk": risk})
    review = site.review()
    path = made(site, review)
    page = li.get(path).text
    assert "Title of T-1" in page
    assert f'href="/login?next=/reviews/{review}"' in page
    assert "<form" not in page
    signed_in = site.visitor("reviewer", "li")
    assert signed_in.get(f"/login?next=/reviews/{review}").headers["location"] == f"/reviews/{review}"


def test_a_forwarded_link_is_not_used_by_whoever_else_is_signed_in(site: Site) -> None:
    review = site.review()
    path = made(site, review)
    sealed = fields(site.stranger().get(path).text)
    wang = site.visitor("reviewer", "wang")
    page = wang.get(path).text
    assert "you are signed in as wang@example.org" in page
    assert "<form" not in page
    assert wang.client.post(f"{path}/decision", data=sealed).status_code == 403
    assert site.working.reviews()[-1]["status"] == "open"


def test_it_works_signed_in_and_after_signing_out(site: Site) -> None:
    path = made(site, site.review())
    li = site.visitor("reviewer", "li")
    page = li.get(path).text
    li.post("/logout")
    assert press(li, path, page=page).status_code == 303
    again = site.visitor("reviewer", "li")
    assert press(again, path, "undo").status_code == 303
    assert site.working.reviews()[-1]["status"] == "open"


def test_a_reason_is_asked_for_and_what_is_not_offered_is_refused(site: Site, li: Visitor) -> None:
    path = made(site, site.review())
    page = li.get(path).text
    answer = press(li, path, "reject", page=page, reason="My words")
    assert answer.status_code == 422
    assert "My words" in answer.text
    assert press(li, path, page=page, verdict="revise", instruction=" ").status_code == 422
    sealed = fields(page)
    assert li.client.post(f"{path}/decision", data=sealed | {"verdict": "drop", "reason": "x"}).status_code == 422
    assert li.client.post(f"{path}/decision", data=sealed | {"verdict": ""}).status_code == 422
    assert site.working.reviews()[-1]["status"] == "open"


def test_a_task_that_was_cancelled_asks_nothing_any_more(site: Site, li: Visitor) -> None:
    """B073"""
    path = made(site, site.review())
    page = li.get(path).text
    site.working.cancel("T-1")
    answer = press(li, path, page=page)
    assert answer.status_code == 409
    assert "Closed without a decision" in answer.text
    assert li.get(path).status_code == 200
    assert site.working.task()["status"] == "cancelled"


def test_guessing_is_slowed_down_and_good_links_open_all_the_same(site: Site, li: Visitor) -> None:
    path = made(site, site.review())
    codes = [li.get(f"/r/{n:043d}").status_code for n in range(MOST_VOID + 1)]
    assert codes == [410] * MOST_VOID + [429]
    assert int(li.get("/r/x").headers["retry-after"]) > 0
    assert li.get(path).status_code == 200


def test_hostile_ai_text_is_only_text(site: Site, li: Visitor) -> None:
    """B075"""
    path = made(site, site.review(text="<img src=x onerror=alert(1)><script>alert(1)</script>"))
    page = li.get(path).text
    assert "<script" not in page
    assert "onerror=alert(1)&gt;" in page or "&lt;img" in page


def test_the_language_changes_without_a_cookie(site: Site, li: Visitor) -> None:
    path = made(site, site.review())
    chinese = li.get(f"{path}?lang=zh_CN")
    assert '<html lang="zh-CN">' in chinese.text
    assert "set-cookie" not in chinese.headers
    answer = li.client.post(f"{path}/decision?lang=zh_CN", data=fields(chinese.text))
    assert answer.headers["location"] == f"{path}?lang=zh_CN"


def test_pictures_are_seen_by_the_link_and_only_those_of_its_review(site: Site, li: Visitor) -> None:
    picture, other, paper = kept(site, "a.png", PNG), kept(site, "b.png", PNG), kept(site, "c.pdf", b"%PDF-1.4")
    path = made(site, site.review(picture={"file": picture}, paper={"file": paper}))
    page = li.get(path).text
    assert f'<img src="{path}/files/{picture}"' in page
    assert "<iframe" not in page
    assert li.get(f"{path}/files/{picture}").content == PNG
    assert li.get(f"{path}/files/{other}").status_code == 404
    assert li.get(f"{path}/files/x").status_code == 404
    press(li, path)
    assert li.get(f"{path}/files/{picture}").status_code == 404


def test_what_a_colleague_has_taken_is_left_to_him(site: Site, li: Visitor) -> None:
    review = site.review()
    path = made(site, review)
    with site.working.board.db.write() as tx:
        anna = person_actor("anna@example.org", "reviewer")
        site.working.board.holding.claim(tx, review, anna, "web", note=None)
    answer = press(li, path, "revise", instruction="My words")
    assert (answer.status_code, "My words" in answer.text) == (409, True)
    assert "A colleague has taken this review." in answer.text


def test_a_link_that_ends_while_somebody_types_keeps_the_words(site: Site, li: Visitor) -> None:
    path = made(site, site.review())
    page = li.get(path).text
    site.working.at(72 * 3600.0 + 1)
    answer = press(li, path, "revise", page=page, instruction="My words")
    assert (answer.status_code, "My words" in answer.text) == (410, True)
    assert "Title of T-1" not in answer.text
    assert site.working.reviews()[-1]["status"] == "open"


def test_in_a_real_browser_on_a_phone(site: Site, address: str, page: Page, axe: str) -> None:  # noqa: F811
    """A browser leaves the origin out of the forms of a page without a referrer. No script, no cookie, no window."""
    loaded: list[int] = []
    page.on("response", lambda answer: loaded.append(len(answer.body())))
    page.set_viewport_size({"width": 375, "height": 800})
    path = made(site, site.review())
    page.goto(f"{address}{path}")
    assert sum(loaded) < 100_000
    assert findings(page, axe) == []
    page.get_by_text("Revise").click()
    assert page.get_by_label("What should be done differently?").is_visible()
    assert findings(page, axe) == []
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", name="Approved")).to_be_visible()
    assert findings(page, axe) == []
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="Title of T-1")).to_be_visible()
    assert page.context.cookies() == []
    assert site.working.reviews()[-1]["status"] == "open"
