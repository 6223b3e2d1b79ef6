"""Who has a review open is shown and locks nothing; whoever writes a decision takes it, and keeps it while at work."""

import re
from datetime import timedelta

from playwright.sync_api import Browser, Page, expect
from sqlalchemy import select

from board.review.models import openings
from tests.web.conftest import Site, Visitor, signed_in

SOON = 15_000  # milliseconds


def tell(visitor: Visitor, review: int, does: str = "") -> dict[str, object]:
    answer = visitor.post(f"/reviews/{review}/here", does=does)
    assert answer.status_code == 200
    return dict(answer.json())


def test_others_see_who_has_it_open_until_he_leaves_or_is_not_heard_of(site: Site) -> None:
    review, other = site.review("T-1"), site.review("T-2")
    anna, ben = site.visitor("reviewer", "anna"), site.visitor("viewer", "ben")
    assert tell(anna, review) == {"also": "", "held": "", "left": 0}
    assert tell(ben, review)["also"] == "Also open: anna@example.org"
    assert "Also open: ben@example.org" in anna.get(f"/reviews/{review}").text
    assert "Also open" not in anna.get(f"/reviews/{other}").text
    anna.decide(other, "approve")
    assert ben.post(f"/reviews/{review}/here", does="left").status_code == 204
    assert tell(anna, review)["also"] == ""
    tell(ben, review)
    site.working.at(120)
    assert tell(anna, review)["also"] == ""
    with site.working.board.db.read() as connection:
        first = (
            connection.execute(select(openings).where(openings.c.person == "user:anna@example.org")).mappings().one()
        )
    assert first["seen_at"] - first["opened_at"] > timedelta(seconds=100), "when he first had it open is kept"


def test_writing_takes_it_and_being_at_work_keeps_it(site: Site) -> None:
    review = site.review("T-1")
    anna, ben = site.visitor("reviewer", "anna"), site.visitor("reviewer", "ben")
    taken = tell(anna, review, "writing")
    assert str(taken["held"]).startswith("You have taken this until")
    assert 590 <= int(str(taken["left"])) <= 600
    seen = tell(ben, review, "writing")
    assert str(seen["held"]).startswith("anna@example.org has taken this until")
    assert seen["left"] == 0
    site.working.at(500)
    assert int(str(tell(anna, review)["left"])) <= 100, "to look at it is not to be at work"
    assert int(str(tell(anna, review, "active")["left"])) >= 590
    tell(ben, review, "active")
    assert site.working.reviews("T-1")[-1]["claimed_by"] == "user:anna@example.org"
    site.working.at(1200)
    assert tell(anna, review, "active")["held"] == "", "what has run out is taken anew, not kept"
    assert site.working.kinds("T-1").count("review_claimed") == 1


def test_viewers_take_nothing_and_strangers_tell_nothing(site: Site) -> None:
    review = site.review("T-1")
    assert tell(site.visitor("viewer"), review, "writing")["held"] == ""
    assert site.stranger().client.post(f"/reviews/{review}/here").status_code in (303, 401, 403, 415)
    reader = site.visitor("reviewer")
    assert reader.client.post(f"/reviews/{review}/here", data={"does": ""}).status_code in (400, 403)
    assert reader.post("/reviews/999999/here").status_code == 404
    with site.working.board.db.read() as connection:
        assert connection.execute(select(openings.c.person)).scalars().all() == ["user:viewer@example.org"]


def test_two_people_in_two_browsers(site: Site, inside: Page, browser: Browser, address: str) -> None:
    review = site.review("T-1")
    inside.goto(f"{address}/reviews/{review}")
    with browser.new_context() as context:
        signed_in(site, context, address, "reviewer")
        other = context.new_page()
        other.goto(f"{address}/reviews/{review}")
        expect(other.locator("[data-also]")).to_have_text("Also open: owner@example.org", timeout=SOON)
        inside.locator("[data-act=revise]").click()
        inside.locator("#instruction").press_sequentially("Short")
        expect(inside.locator("[data-held]")).to_contain_text("You have taken this until", timeout=SOON)
        expect(inside.locator("[data-left]")).to_have_text(re.compile("^(10:00|9:[0-5][0-9])$"), timeout=SOON)
        other.reload()
        expect(other.locator("[data-held]")).to_contain_text("owner@example.org has taken this until", timeout=SOON)
        other.goto("about:blank")
