"""Narrowing the inbox, keeping that in every address, and saving it under a name."""

import re

from playwright.sync_api import Page, expect
from sqlalchemy import update

from board.access import views
from board.review.models import reviews
from tests.web.conftest import Site


def risky(site: Site, review: int) -> int:
    with site.working.board.db.write() as tx:
        tx.execute(update(reviews).where(reviews.c.id == review).values(risk="high", reason="risk"))
    return review


def titles(page: str) -> list[str]:
    return re.findall(r'<strong class="row-title"[^>]*>([^<]*)', page)


def test_an_address_says_what_the_list_shows(site: Site) -> None:
    site.review("T-1")
    high = risky(site, site.review("T-2"))
    site.working.submit("D-1", "direct", title="Direct")
    site.working.wait("D-1", "needs_review")
    reader = site.visitor("reviewer")
    for query, shown in (
        ("risk=high", ["Title of T-2"]),
        ("risk=high,low&type=judge", ["Title of T-2", "Title of T-1"]),
        ("type=direct&type=judge&risk=low", ["Title of T-1", "Direct"]),
        ("reason=direct", ["Direct"]),
        ("due=none&risk=high", ["Title of T-2"]),
        ("due=overdue", []),
        ("mine=1", []),
        ("risk=nonsense&due=soon&reason=x", ["Title of T-2", "Title of T-1", "Direct"]),
    ):
        assert titles(reader.get(f"/?{query}").text) == shown, query
    page = reader.get("/?risk=high&type=judge").text
    assert f'href="/reviews/{high}?type=judge&amp;risk=high"' in page
    assert 'href="/?type=judge" aria-label="Without: High risk"' in page
    assert titles(reader.get(f"/reviews/{high}?risk=high").text) == ["Title of T-2"]


def test_an_open_page_hears_of_what_its_list_would_show(site: Site) -> None:
    since = site.review("T-1")
    site.review("T-2")
    reader = site.visitor("reviewer")
    assert reader.get(f"/pulse?since={since}").json()["new"] == 1
    assert reader.get(f"/pulse?since={since}&risk=high").json() == {
        "waiting": 2,
        "new": 0,
        "said": "0 new reviews: show them",
    }
    assert 'data-narrow="risk=high" ' in reader.get("/?risk=high").text


def test_after_a_decision_the_same_list_goes_on(site: Site) -> None:
    low = site.review("T-1")
    first, second = risky(site, site.review("T-2")), risky(site, site.review("T-3"))
    reader = site.visitor("reviewer")
    for review, leads_to in (
        (first, f"/reviews/{second}?risk=high&done={first}"),
        (second, f"/?risk=high&done={second}"),
    ):
        fields = reader.form(f"/reviews/{review}?risk=high", "approve")
        answer = reader.post(f"/reviews/{review}/decision?risk=high", **fields)
        assert answer.headers["location"] == leads_to
    assert reader.decide(low, "approve").headers["location"] == f"/?done={low}"
    held = reader.post(f"/reviews/{risky(site, site.review('T-4'))}/hold?risk=high", do="claim")
    assert held.headers["location"].endswith("?risk=high")


def test_a_view_is_saved_shown_renamed_and_deleted_by_its_owner_alone(site: Site) -> None:
    reader, other = site.visitor("reviewer"), site.visitor("operator")
    assert (
        reader.post("/views?risk=high&due=today", name=" <b>Hot  ones ").headers["location"] == "/?risk=high&due=today"
    )
    page = reader.get("/?due=today&risk=high").text
    link = '<a class="saved" href="/?risk=high&amp;due=today" aria-current="page">'
    assert link in page, "the order of the address does not matter"
    assert "&lt;b&gt;Hot ones" in page
    assert "saved" not in re.findall(r'<a class="(\w+)" href="/\?', other.get("/").text)
    with site.working.board.db.read() as connection:
        [view] = views.of(connection, f"user:{reader.email}", "reviews")
    other.post(f"/views/{view.id}", do="delete")
    other.post(f"/views/{view.id}", do="rename", name="Mine now")
    assert "&lt;b&gt;Hot ones" in reader.get("/").text
    reader.post(f"/views/{view.id}?risk=high", do="rename", name="Hot")
    assert re.search(r"saved.*\n?.*>Hot<", reader.get("/tasks").text), "it stands in the rail of every page"
    assert reader.post(f"/views/{view.id}?risk=high", do="delete").headers["location"] == "/?risk=high"
    assert 'class="saved"' not in reader.get("/").text


def test_a_name_stands_for_one_view_and_there_is_an_end_to_them(site: Site) -> None:
    reader = site.visitor("reviewer")
    reader.post("/views?risk=high", name="Hot")
    reader.post("/views?risk=medium", name="Hot")
    reader.post("/views?risk=low", name="Cold")
    with site.working.board.db.read() as connection:
        hot, cold = views.of(connection, f"user:{reader.email}", "reviews")
    assert (hot.state, cold.state) == ({"risk": ["medium"]}, {"risk": ["low"]})
    reader.post(f"/views/{cold.id}", do="rename", name="Hot")
    assert "You have a view of this name already" in reader.get("/").text
    for number in range(views.MOST):
        reader.post("/views?risk=high", name=f"View {number}")
    assert "Delete one first." in reader.get("/").text
    reader.post("/views?risk=high", name="x" * 81)
    assert "at most 80 characters" in reader.get("/").text
    with site.working.board.db.read() as connection:
        assert len(views.of(connection, f"user:{reader.email}", "reviews")) == views.MOST


def test_narrowing_and_saving_in_the_browser(site: Site, inside: Page) -> None:
    site.review("T-1")
    risky(site, site.review("T-2"))
    inside.goto(site.working.board.settings.public_url)
    inside.locator(".narrowing summary").click()
    inside.locator(".narrowing select[name=risk]").select_option("high")
    inside.locator(".narrowing button[type=submit]").click()
    expect(inside.locator(".row-title")).to_have_text(["Title of T-2"])
    inside.locator(".naming summary").click()
    inside.get_by_label("Name of this view").fill("Hot")
    inside.get_by_role("button", name="Save the view").click()
    expect(inside.locator(".saved")).to_have_text("Hot")
    expect(inside.locator("#list-title")).to_have_text("Hot")
