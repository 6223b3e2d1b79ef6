"""The open inbox in a real Chromium: it hears of new reviews by itself, says how many, and moves nothing meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from board.web import pulse
from tests.rig.asgi import serve
from tests.web.conftest import Site

TOLD = 15_000  # milliseconds; an open page asks by itself every 20 s


@pytest.fixture
def address(site: Site) -> Iterator[str]:
    with serve(site.app) as url:
        site.working.board.settings.public_url = url
        yield url


def sign_in(site: Site, page: Page, address: str) -> None:
    session = site.visitor("reviewer").client.cookies["board_session"]
    page.context.add_cookies([{"name": "board_session", "value": session, "url": address}])


@pytest.fixture
def inbox(site: Site, page: Page, address: str) -> Iterator[Page]:
    """Open, with one review; a mark in the window shows that the page was never loaded again."""
    site.review("T-1")
    sign_in(site, page, address)
    page.goto(address)
    page.evaluate("window.stayed = true")
    yield page
    page.goto("about:blank")


def rows(page: Page) -> list[str]:
    return page.locator("[data-list] .row-title").all_text_contents()


def test_new_reviews_are_counted_and_the_list_stays_until_it_is_asked_for(site: Site, inbox: Page) -> None:
    told, count = inbox.locator("[data-fresh] a"), inbox.locator("[data-waiting]")
    expect(told).to_be_hidden()
    second = site.review("T-2")
    expect(told).to_have_text("1 new review: show it", timeout=TOLD)
    expect(count).to_have_text("2", timeout=TOLD)
    site.review("T-3")
    expect(told).to_have_text("2 new reviews: show them", timeout=TOLD)
    expect(inbox.locator("[data-live] p").last).to_have_text("2 new reviews: show them")
    assert rows(inbox) == ["Title of T-1"]
    site.visitor("owner").decide(second, "approve")
    expect(told).to_have_text("1 new review: show it", timeout=TOLD)
    assert rows(inbox) == ["Title of T-1"]
    assert inbox.evaluate("window.stayed === true")
    told.click()
    expect(told).to_be_hidden()
    assert rows(inbox) == ["Title of T-1", "Title of T-3"]


def test_of_a_list_of_one_type_only_its_reviews_are_new(site: Site, inbox: Page) -> None:
    inbox.goto(f"{site.working.board.settings.public_url}/?type=direct")
    site.review("T-2")
    expect(inbox.locator("[data-waiting]")).to_have_text("2", timeout=TOLD)
    expect(inbox.locator("[data-fresh] a")).to_be_hidden()
    site.working.submit("D-1", "direct")
    expect(inbox.locator("[data-fresh] a")).to_have_text("1 new review: show it", timeout=TOLD)


def test_where_nothing_is_told_the_page_asks_by_itself(site: Site, page: Page, address: str) -> None:
    page.route("**/pulse/live*", lambda route: route.fulfill(status=404))
    page.clock.install()
    sign_in(site, page, address)
    page.goto(address)
    told = page.locator("[data-fresh] a")
    site.review("T-1")
    with page.expect_response("**/pulse?*"):
        page.clock.fast_forward(20_000)
    expect(told).to_have_text("1 new review: show it", timeout=TOLD)
    page.goto("about:blank")


def test_the_line_ends_with_the_session(site: Site, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "PING_SECONDS", 0.05)
    visitor = site.visitor("viewer")
    cookies = {"board_session": visitor.client.cookies["board_session"]}
    with (
        httpx2.Client(base_url=address, cookies=cookies, timeout=30, trust_env=False, verify=False) as client,
        client.stream("GET", "/pulse/live") as answer,
    ):
        lines = answer.iter_lines()
        assert next(lines) == "event: pulse"
        assert next(lines) == 'data: {"waiting": 0, "new": 0, "said": "0 new reviews: show them"}'
        assert visitor.post("/logout").status_code == 303
        assert all(line in ("", ": ping") for line in lines), "and it comes to an end"


def test_strangers_are_told_nothing(site: Site) -> None:
    assert site.stranger().get("/pulse/live").status_code == 303
    assert site.visitor("viewer").get("/pulse?since=-1").status_code in (400, 422)


@pytest.mark.parametrize(("locale", "width"), [("en", 1280), ("zh-CN", 1280), ("en", 360), ("zh-CN", 360)])
def test_the_hint_fits_every_screen(
    site: Site, address: str, browser: Browser, screenshot: Callable[[Page, str], Path], locale: str, width: int
) -> None:
    site.review("T-1", summary="A customer asks for a quote.")
    with browser.new_context(locale=locale, viewport={"width": width, "height": 800}) as context:
        page = context.new_page()
        sign_in(site, page, address)
        page.goto(address)
        site.review("T-2")
        told = page.locator("[data-fresh] a")
        expect(told).to_be_visible(timeout=TOLD)
        expect(told).to_have_text("1 new review: show it" if locale == "en" else "新增 1 个待审核任务：点击显示")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        screenshot(page, f"inbox-new-{locale}-{width}")
        page.goto("about:blank")
