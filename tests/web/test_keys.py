"""Deciding without the mouse, in a real Chromium."""

from playwright.sync_api import Page, expect

from tests.web.conftest import Site


def test_twenty_reviews_by_keyboard_alone(site: Site, address: str, inside: Page) -> None:
    """Approve, revise, reject by turns: each opens the next review, is announced, and the heading has the focus."""
    count = 20
    for number in range(count):
        site.review(f"T-{number:02}")
    inside.goto(address)
    inside.keyboard.press("j")
    inside.keyboard.press("k")
    inside.keyboard.press("o")
    inside.wait_for_url("**/reviews/*")
    expected: dict[str, str] = {}
    for number in range(count):
        task_id = inside.locator(".review-head h2").inner_text().removeprefix("Title of ")
        before = inside.url
        verdict = ("approve", "revise", "reject")[number % 3]
        expected[task_id] = verdict
        if verdict == "approve":
            inside.keyboard.press("a")
            expect(inside.locator("button.approve")).to_be_focused()
            inside.keyboard.press("Enter")
        elif verdict == "revise":
            inside.keyboard.press("r")
            inside.keyboard.type("Shorter, please")
            inside.keyboard.press("Control+Enter")
        else:
            inside.keyboard.press("d")
            inside.keyboard.press("Space")
            inside.keyboard.press("Enter")
        inside.wait_for_url(lambda url, before=before: url != before and "done=" in url)  # type: ignore[misc]
        expect(inside.locator("[data-toast]")).to_contain_text(f"Title of {task_id}")
        expect(inside.locator("[data-live]")).to_contain_text(f"Title of {task_id}")
        expect(inside.locator(".review-head h2")).to_be_focused()
    decided = {task_id: site.working.reviews(task_id)[0]["verdict"] for task_id in expected}
    assert decided == expected
    assert len(expected) == count


def test_moving_while_reading_and_the_pairs(site: Site, address: str, inside: Page) -> None:
    first, second = site.review("T-1"), site.review("T-2")
    inside.goto(f"{address}/reviews/{first}")
    inside.keyboard.press("]")
    inside.wait_for_url(f"**/reviews/{second}")
    inside.keyboard.press("[")
    inside.wait_for_url(f"**/reviews/{first}")
    inside.keyboard.press("g")
    inside.keyboard.press("d")  # the second key of a pair is no reject
    inside.wait_for_url("**/decided")
    inside.keyboard.press("g")
    inside.keyboard.press("i")
    inside.wait_for_url(f"{address}/")
    inside.locator("[data-list] a").first.focus()
    inside.keyboard.press("ArrowDown")
    expect(inside.locator("[data-list] a").nth(1)).to_be_focused()


def test_a_key_of_ones_own(site: Site, address: str, inside: Page) -> None:
    review = site.review("T-1")
    inside.goto(f"{address}/reviews/{review}")
    approve = inside.locator("button.approve")
    inside.keyboard.press("?")
    cap = inside.locator("#help button[data-chord=approve]")
    cap.focus()
    inside.keyboard.press("Enter")
    inside.keyboard.press("r")  # was revise's: the two change places
    expect(cap).to_have_text("r")
    expect(inside.locator("#help button[data-chord=revise]")).to_have_text("a")
    inside.keyboard.press("Escape")
    inside.reload()
    expect(approve.locator("kbd")).to_have_text("r")
    inside.keyboard.press("r")
    expect(approve).to_be_focused()
    inside.keyboard.press("?")
    inside.get_by_role("button", name="The usual keys again").click()
    expect(cap).to_have_text("a")
