"""A page that breaks its own policy, fails in a script or asks another host is noticed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from tests.rig.asgi import serve
from tests.rig.browser import watch

PAGES = {
    "/good": "<h1>Inbox 收件箱</h1>",
    "/inline": "<h1>x</h1><script>document.title = 'ran'</script>",
    "/error": "<h1>x</h1><script src=/script.js></script>",
    "/elsewhere": "<h1>x</h1><img src='http://cdn.example.org/x.png'>",
}


@pytest.fixture
def site() -> Iterator[str]:
    def page(request):  # type: ignore[no-untyped-def]
        headers = {"Content-Security-Policy": "default-src 'self'; img-src *"}
        return HTMLResponse(PAGES[request.url.path], headers=headers)

    def script(request):  # type: ignore[no-untyped-def]
        return HTMLResponse("missing_function()", headers={"Content-Type": "text/javascript"})

    with serve(Starlette(routes=[*(Route(path, page) for path in PAGES), Route("/script.js", script)])) as url:
        yield url


def test_a_good_page_is_shown_and_photographed(page: Page, site: str, screenshot: Callable[[Page, str], Path]) -> None:
    page.goto(f"{site}/good")
    assert page.inner_text("h1") == "Inbox 收件箱"
    assert screenshot(page, "good").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/inline", "Content Security Policy"),
        ("/error", "missing_function is not defined"),
        ("/elsewhere", "loaded from elsewhere: http://cdn.example.org/x.png"),
    ],
)
def test_problems_are_noticed(browser: Browser, site: str, path: str, problem: str) -> None:
    page = browser.new_page()
    problems = watch(page)
    page.goto(site + path)
    assert len(problems) == 1
    assert problem in problems[0]
    assert page.title() != "ran"
