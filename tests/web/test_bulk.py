"""Approving several from the inbox: the list before it, the report after it."""

import re

from playwright.sync_api import Page, expect

from tests.web.conftest import Site


def pins(page: str) -> list[str]:
    return re.findall(r'name="pin" value="([^"]+)"', page)


def test_the_list_names_each_target_and_what_is_left_out(site: Site) -> None:
    first, second = site.review("T-1"), site.review("T-2")
    other = site.review("T-3", extra="x")
    reviewer = site.visitor("reviewer")
    page = reviewer.get(f"/bulk?r={first}&r={second}&r={other}&r=nonsense").text
    assert "2 reviews would be approved" in page
    assert page.count("The task is done. No other system is changed.") == 2
    assert "Its input has other fields than the first one." in page
    assert len(pins(page)) == 2
    assert {site.working.task(it)["status"] for it in ("T-1", "T-2")} == {"needs_review"}, "looking changes nothing"


def test_each_is_decided_on_its_own_and_the_report_says_so(site: Site) -> None:
    first, second = site.review("T-1"), site.review("T-2")
    reviewer = site.visitor("reviewer")
    page = reviewer.get(f"/bulk?r={first}&r={second}").text
    version = str(site.working.task("T-2")["version"])
    site.visitor("operator").post("/tasks/T-2/edit", version=version, payload='{"text": "New"}')
    report = reviewer.client.post(
        "/bulk", data={"csrf": reviewer.csrf, "pin": pins(page)}, headers={"Origin": "http://127.0.0.1:8000"}
    ).text
    assert "1 review approved" in report
    assert "It changed meanwhile." in report
    assert site.working.reviews("T-1")[-1]["verdict"] == "approve"
    assert site.working.task("T-2")["status"] == "needs_review"
    undone = reviewer.post("/bulk/undo", r=str(first)).text
    assert "1 approval undone" in undone
    assert site.working.task("T-1")["status"] == "needs_review"


def test_only_what_can_be_approved_together_has_a_box(site: Site) -> None:
    review = site.review("T-1")
    site.working.submit("P-1", "pay")
    site.working.wait("P-1", "needs_review")
    page = site.visitor("reviewer").get("/").text
    assert re.findall(r'name="r" value="(\d+)"', page) == [str(review)]
    assert page.count("data-row") == 2


def test_nothing_selected_and_nothing_readable_lead_back(site: Site) -> None:
    review = site.review()
    reviewer = site.visitor("reviewer")
    assert reviewer.get("/bulk").headers["location"] == "/"
    assert reviewer.post("/bulk", pin=f"{review}:x").headers["location"] == "/"
    assert site.working.task()["status"] == "needs_review"


def test_only_for_whoever_may_decide(site: Site) -> None:
    review = site.review()
    viewer = site.visitor("viewer")
    assert 'name="r"' not in viewer.get("/").text
    assert viewer.get(f"/bulk?r={review}").status_code == 403
    assert viewer.post("/bulk", pin=f"{review}:1:abc").status_code == 403
    assert site.working.task()["status"] == "needs_review"


def test_selecting_with_the_keys(site: Site, address: str, inside: Page) -> None:
    for number in range(4):
        site.review(f"T-{number}")
    inside.goto(address)
    inside.locator("[data-list] a").first.focus()
    inside.keyboard.press("x")
    inside.keyboard.press("Shift+J")
    inside.keyboard.press("Shift+J")
    expect(inside.locator("[name=r]:checked")).to_have_count(3)
    inside.get_by_role("button", name="Approve the selected…").click()
    inside.wait_for_url("**/bulk?r=*")
    expect(inside.locator("[name=pin]")).to_have_count(3)
    inside.locator("[name=pin]").last.uncheck()
    inside.get_by_role("button", name="Approve all that are ticked").click()
    expect(inside.get_by_role("heading", name="2 reviews approved")).to_be_visible()
    done = [site.working.reviews(f"T-{number}")[-1]["verdict"] for number in range(4)]
    assert done == ["approve", "approve", None, None]
