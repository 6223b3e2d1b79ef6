"""The page Load: what connections carry, and what types spend, in both languages."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from board.effects import breaker
from board.queue import spending
from board.queue.spending import Spent
from tests.rig.asgi import serve
from tests.web.conftest import Site


@pytest.fixture
def busy(site: Site) -> Site:
    """A connection that is shut, one that works, and a type near its budget."""
    key = "app-0123456789"
    site.working.apply(
        connections=[
            {
                "name": "dify",
                "kind": "dify",
                "url": "https://dify.example.org/v1",
                "key": key,
                "limits": {"per_day": 9},
            },
            {"name": "other", "kind": "dify", "url": "https://dify.example.org/v1", "key": key},
        ]
    )
    site.working.type("lead", "pay", limits={"tokens_per_day": 5000, "concurrency": 4})
    with site.working.board.db.write() as tx:
        for _ in range(breaker.FAILURES):
            breaker.failed(tx, "dify", "<b>Nobody</b> answers.")
        spending.add(tx, [Spent("lead", 12, 5100)], "UTC")
    return site


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", ["Shut until", "20 failures in a row", "Working", "Calls today", "Tokens used up", "5,100", "5,000"]),
        ("zh-CN", ["今日调用", "今日 Token 数", "Token 已用完", "正常", "连续失败 20 次", "5,100"]),
    ],
)
def test_what_the_page_shows(busy: Site, lang: str, words: list[str]) -> None:
    page = busy.visitor("reviewer", lang=lang).get("/ops").text
    assert [word for word in words if word not in page] == []
    assert "&lt;b&gt;Nobody" in page
    assert 'href="/ops" aria-current="page"' in page


def test_nobody_is_shown_it_who_is_not_signed_in(busy: Site) -> None:
    assert busy.stranger().get("/ops").status_code == 303


def test_what_changes_shows_without_a_reload(busy: Site, page: Page) -> None:
    with serve(busy.app) as url:
        cookie = {"name": "board_session", "value": busy.visitor("owner").client.cookies["board_session"], "url": url}
        page.context.add_cookies([cookie])  # type: ignore[list-item]
        refused: list[str] = []
        page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
        page.goto(f"{url}/ops")
        page.evaluate("window.stayed = true")
        expect(page.get_by_text("Shut", exact=True)).to_be_visible()
        with busy.working.board.db.write() as tx:
            breaker.worked(tx, "dify")
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # else after five seconds
        expect(page.get_by_text("Shut", exact=True)).to_have_count(0, timeout=30_000)
        assert page.evaluate("window.stayed")
        assert refused == []
        page.goto("about:blank")
