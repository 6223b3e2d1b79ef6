"""When something is in the way of a decision: no connection, a session that has ended. Nothing typed is lost."""

from playwright.sync_api import Page, expect

from tests.web.conftest import PASSWORD, Site, signed_in


def test_a_session_that_ended_is_begun_again_in_place_and_the_draft_is_there(
    site: Site, address: str, inside: Page
) -> None:
    from board.access import users

    review = site.review()
    with site.working.board.db.write() as tx:
        person = users.find_by_email(tx, "owner@example.org")
        assert person is not None
        users.set_password(tx, person.id, PASSWORD)
    signed_in(site, inside.context, address)  # a new password has ended the other session
    inside.goto(f"{address}/reviews/{review}")
    inside.keyboard.press("r")
    inside.keyboard.type("Thought about for long")
    inside.context.clear_cookies()
    inside.keyboard.press("Control+Enter")
    expect(inside.get_by_role("heading", name="Your session has ended")).to_be_visible()
    expect(inside.locator("textarea")).to_have_value("Thought about for long")
    inside.get_by_label("Mail address").fill("owner@example.org")
    inside.get_by_label("Password").fill(PASSWORD)
    inside.get_by_role("button", name="Sign in and go on").click()
    inside.wait_for_url(f"**/reviews/{review}")
    inside.keyboard.press("r")
    expect(inside.locator("#instruction")).to_have_value("Thought about for long")
    inside.keyboard.press("Control+Enter")
    inside.wait_for_url("**done=*")
    assert site.working.reviews()[0]["instruction"] == "Thought about for long"
    inside.goto(f"{address}/reviews/{review}")
    assert inside.evaluate("Object.keys(sessionStorage).length") == 0


def test_what_was_typed_for_a_review_that_is_over_goes_along_to_the_new_one(
    site: Site, address: str, inside: Page
) -> None:
    """An owner was faster (no hold keeps him out), and has sent it back: the draft is kept for the next round."""
    review = site.review()
    inside.goto(f"{address}/reviews/{review}")
    inside.keyboard.press("r")
    inside.keyboard.type("My careful thoughts")
    site.visitor("owner", "wang").decide(review, "revise", instruction="Quick word")
    site.working.until(lambda: len(site.working.reviews()) == 2)
    inside.keyboard.press("Control+Enter")
    expect(inside.locator("[data-refused]")).to_contain_text("wang@example.org sent this back for another round.")
    expect(inside.locator(".draft textarea")).to_have_value("My careful thoughts")
    inside.get_by_role("link", name="The task waits for a new review").click()
    inside.wait_for_url(f"**/reviews/{site.working.reviews()[-1]['id']}")
    inside.keyboard.press("r")
    expect(inside.locator("#instruction")).to_have_value("My careful thoughts")


def test_without_a_connection_nobody_decides(site: Site, address: str, inside: Page) -> None:
    review = site.review()
    inside.goto(f"{address}/reviews/{review}")
    approve, banner = inside.locator("button.approve"), inside.locator("[data-away]")
    expect(banner).to_be_hidden()
    inside.context.set_offline(True)
    expect(banner).to_be_visible()
    expect(approve).to_be_disabled()
    expect(inside.get_by_text("Title of T-1").first).to_be_visible()
    inside.context.set_offline(False)
    expect(banner).to_be_hidden()
    expect(approve).to_be_enabled()


def test_the_second_step_of_a_high_risk_names_what_it_is_about(site: Site, address: str, inside: Page) -> None:
    site.working.type("risky", "echo", review={"when": "always", "risk": "high"})
    site.working.submit("R-1", "risky", title="Pay the rent", payload={"a": 1})
    site.working.wait("R-1", "needs_review")
    inside.set_viewport_size({"width": 375, "height": 700})
    inside.goto(f"{address}/reviews/{site.working.reviews('R-1')[-1]['id']}")
    inside.locator("summary.approve").click()
    sheet = inside.locator("form.up.whole:visible")
    expect(sheet).to_contain_text("Pay the rent")
    expect(sheet).to_contain_text("No other system is changed.")
    box = sheet.bounding_box()
    assert box is not None
    assert (box["x"], box["width"]) == (0, 375)
    assert box["height"] > 500
    assert site.working.task("R-1")["status"] == "needs_review"
    sheet.get_by_role("button", name="Yes, approve this").click()
    inside.wait_for_url("**done=*")
    assert site.working.reviews("R-1")[-1]["verdict"] == "approve"
