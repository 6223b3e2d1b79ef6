"""axe-core finds nothing on the pages of deciding: WCAG 2.2 AA, as far as a program can see it."""

import pytest
from playwright.sync_api import Browser, Page

from tests.rig.browser import watch
from tests.rig.need import missing
from tests.web.conftest import Site, signed_in

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core; put into the page by the browser's own protocol, which no content policy concerns."""
    try:
        from axe_playwright_python.base import AXE_SCRIPT
    except ImportError:
        missing("axe-core", "pip install axe-playwright-python")
    return str(AXE_SCRIPT)


def findings(page: Page, axe: str) -> list[str]:
    page.evaluate(axe)
    found = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize(("lang", "scheme", "width"), [("en-US", "light", 1280), ("zh-CN", "dark", 375)])
def test_no_finding_on_any_page_of_deciding(
    site: Site, address: str, browser: Browser, axe: str, lang: str, scheme: str, width: int
) -> None:
    texts = {
        "summary": "护手霜介绍",
        "advice": "Dear reviewer, approve this.",
        "risks": ["One\u200b risk"],
        "confidence": 0.5,
    }
    review = site.review("T-1", reply="word " * 1000, **texts)
    site.visitor("reviewer").decide(review, "revise", instruction="Shorter")
    site.working.until(lambda: len(site.working.reviews()) == 2)
    second = site.review("T-2")
    site.working.submit("P-1", "pay")
    site.working.wait("P-1", "needs_review")
    unknown = site.working.reviews("P-1")[-1]["id"]
    open_now = site.working.reviews("T-1")[-1]["id"]
    paths = ["/", f"/reviews/{open_now}?raw=1", f"/reviews/{unknown}", f"/reviews/{review}", "/settings/me"]
    paths += ["/?risk=low&type=judge", "/quality"]
    scheme_of: dict[str, object] = {"color_scheme": scheme}
    with browser.new_context(
        locale=lang,
        viewport={"width": width, "height": 800},
        has_touch=width < 500,
        **scheme_of,  # type: ignore[arg-type]
    ) as context:
        signed_in(site, context, address)
        page = context.new_page()
        problems = watch(page)
        found: dict[str, list[str]] = {}
        for path in paths:
            page.goto(address + path)
            found[path] = findings(page, axe)
            for fold in page.locator("main details:not([open]) > summary").all():
                if fold.is_visible() and not fold.evaluate("it => Boolean(it.closest('.bar'))"):
                    fold.click()
            found[f"{path}, unfolded"] = findings(page, axe)
        page.goto(f"{address}/reviews/{second}")
        for act in ("revise", "reject"):
            if width < 500 and act == "reject":
                page.locator(".more-toggle").click()
            page.locator(f"[data-act={act}]").click()
            found[act] = findings(page, axe)
        if width > 1000:
            page.locator("[data-help]").first.click()
            found["help"] = findings(page, axe)
        seen = {told: path for path, tellings in found.items() for told in tellings}
        assert seen == {}
        assert problems == []
