"""The pages in a real Chromium: the keyboard, narrow screens, no script at all, and markup from an AI (B075)."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.rig.browser import watch
from tests.web.conftest import Site, signed_in

MARKUP = Path(__file__).parent.parent / "data" / "cases" / "web" / "ai_outputs_markup.json"
TEXTS: list[str] = json.loads(MARKUP.read_text(encoding="utf-8"))
# Headers can only be sent in Latin letters, and a long title must not stand in the way either.
LONG = "an-unbroken-identifier-" * 6


def test_markup_of_an_ai_stays_text_everywhere(site: Site, address: str, inside: Page) -> None:
    """B075: as result, title, note, tag, source, reason, instruction and error."""
    for number, text in enumerate(TEXTS):
        site.working.submit(
            f"T-{number}",
            "judge",
            title=text,
            note=text,
            tags=[text],
            source=text,
            payload={"text": text, text: [text], "summary": text, "advice": text, "reasons": [text], "risks": [text]},
        )
    ids = [f"T-{number}" for number in range(len(TEXTS))]
    for task_id in ids:
        site.working.wait(task_id, "needs_review")
    reviewer = site.visitor("reviewer")
    for number, task_id in enumerate(ids[:3]):
        review = site.working.reviews(task_id)[-1]["id"]
        reviewer.decide(review, "reject", reason_class="other", reason=TEXTS[number])
    for number, task_id in enumerate(ids[3:5]):
        review = site.working.reviews(task_id)[-1]["id"]
        reviewer.decide(review, "revise", instruction=TEXTS[number])
        site.working.until(lambda task_id=task_id: len(site.working.reviews(task_id)) == 2)  # type: ignore[misc]
    inside.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog.message}"))
    reviews = [row["id"] for task_id in ids for row in site.working.reviews(task_id)]
    paths = ["/", "/decided", "/tasks", *(f"/tasks?tag={quote(text)}&q={quote(text)}" for text in TEXTS[:2])]
    paths += [f"/reviews/{review}" for review in reviews] + [f"/tasks/{task_id}" for task_id in ids]
    for path in paths:
        assert inside.goto(address + path).status == 200  # type: ignore[union-attr]
        for fold in inside.locator("details.fold > summary, details.again > summary").all():
            fold.click()
        assert "ran" not in inside.title().split(" · ")[0]
        assert inside.evaluate("document.querySelectorAll('main img, main script, main svg[onload]').length") == 0
        assert inside.evaluate("document.querySelectorAll('a[href^=\"javascript\"]').length") == 0
    inside.goto(f"{address}/reviews/{site.working.reviews('T-4')[-1]['id']}")
    expect(inside.locator(".output strong", has_text="bold").first).to_be_visible()
    inside.goto(f"{address}/tasks/T-1")
    expect(inside.get_by_role("heading", level=1)).to_have_text(TEXTS[1])


def test_deciding_by_keyboard(site: Site, address: str, inside: Page) -> None:
    first, second = site.review("T-1"), site.review("T-2")
    inside.goto(address)
    inside.keyboard.press("j")
    inside.keyboard.press("Enter")
    inside.wait_for_url(f"**/reviews/{second}")
    inside.keyboard.press("r")
    field = inside.locator("#instruction")
    expect(field).to_be_focused()
    inside.keyboard.type("Say ajkrd? / and more")
    expect(field).to_have_value("Say ajkrd? / and more")
    inside.keyboard.press("Escape")
    expect(field).not_to_be_visible()
    inside.keyboard.press("r")
    expect(field).to_have_value("Say ajkrd? / and more")
    inside.keyboard.press("Control+Enter")
    inside.wait_for_url(f"**/reviews/{first}?done={second}")
    inside.keyboard.press("a")
    expect(inside.locator("button.approve")).to_be_focused()
    assert site.working.task("T-1")["status"] == "needs_review", "the key alone decides nothing"
    inside.keyboard.press("Enter")
    inside.wait_for_url(f"**/*done={first}")
    assert site.working.reviews("T-1")[-1]["verdict"] == "approve"
    assert site.working.reviews("T-2")[0]["instruction"] == "Say ajkrd? / and more"
    inside.get_by_role("button", name="Undo").click()
    inside.wait_for_url(f"**/reviews/{first}")
    assert site.working.task("T-1")["status"] == "needs_review"


def test_keys_rest_while_somebody_composes_holds_a_modifier_or_has_them_off(
    site: Site, address: str, inside: Page
) -> None:
    site.review("T-1")
    inside.goto(address)
    approve = inside.locator("button.approve")
    inside.evaluate(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', isComposing: true, bubbles: true}))"
    )
    expect(approve).not_to_be_focused()
    inside.keyboard.press("Alt+a")
    expect(approve).not_to_be_focused()
    inside.keyboard.press("?")
    box = inside.get_by_label("Single keys are on in this browser")
    expect(box).to_be_checked()
    inside.keyboard.press("a")
    expect(approve).not_to_be_focused()
    box.uncheck()
    inside.keyboard.press("Escape")
    inside.reload()
    inside.keyboard.press("a")
    expect(approve).not_to_be_focused()
    inside.get_by_role("button", name="Keyboard").click()
    box.check()
    inside.keyboard.press("Escape")
    inside.keyboard.press("/")
    expect(inside.locator("#find")).to_be_focused()


@pytest.mark.parametrize(("width", "lang"), [(320, "en-US"), (320, "zh-CN"), (390, "en-US"), (900, "en-US")])
def test_no_page_scrolls_sideways(site: Site, address: str, browser: Browser, width: int, lang: str) -> None:
    table, code = f"| a | b |\n|---|---|\n| {LONG} | 1 |", f"```\n{LONG}\n```"
    review = site.review(LONG, summary=LONG, table=table, code=code)
    site.working.submit("P-1", "pay")
    site.working.wait("P-1", "needs_review")
    unknown = site.working.reviews("P-1")[-1]["id"]
    touch = width < 500
    with browser.new_context(locale=lang, viewport={"width": width, "height": 700}, has_touch=touch) as context:
        signed_in(site, context, address)
        page = context.new_page()
        problems = watch(page)
        for path in (
            *("/", "/decided", "/tasks", f"/reviews/{review}", f"/reviews/{unknown}", f"/tasks/{LONG}", "/tasks/P-1"),
            *(f"/tasks/{LONG}/edit", "/settings/types", "/settings/connections", "/docs", "/nothing"),
        ):
            page.goto(address + path)
            for fold in page.locator("details > summary:visible").all():
                if fold.is_visible():
                    fold.click()
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{path} is {wide} px too wide"
            small = page.evaluate(TOO_SMALL, 43.5 if touch else 23.5)
            assert small == [], f"{path}: hard to hit"
        assert problems == []


# What can be clicked and is smaller than it should be; links inside sentences are excepted (WCAG 2.5.8).
TOO_SMALL = """
least => [...document.querySelectorAll("button, .button, nav a, .bar summary, select, input:not([type=hidden])")]
  .filter(e => e.checkVisibility({visibilityProperty: true}) && !e.closest(".off-screen, .toggle"))
  .map(e => [e, (e.closest("label") ?? e).getBoundingClientRect()])
  .filter(([e, box]) => box.height < (e.matches("[type=checkbox], [type=radio]") ? 18 : least))
  .map(([e, box]) => `${e.outerHTML.slice(0, 80)} ${Math.round(box.height)}`)
"""


def test_everything_can_be_decided_without_javascript(site: Site, address: str, browser: Browser) -> None:
    first, second = site.review("T-1"), site.review("T-2")
    with browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 800}) as context:
        signed_in(site, context, address, "reviewer")
        page = context.new_page()
        page.goto(address)
        page.get_by_role("link", name="Title of T-1").click()
        page.locator("summary", has_text="Revise").click()
        page.get_by_label("What should be done differently?").fill("Shorter")
        page.get_by_role("button", name="Send back").click()
        page.wait_for_url(f"**/reviews/{second}?done={first}")
        page.get_by_text("More", exact=True).click()
        page.locator("summary", has_text="Reject").click()
        page.get_by_label("A duplicate").check()
        page.get_by_role("button", name="Reject and cancel the task").click()
        page.wait_for_url("**done=*")
        page.get_by_role("button", name="Undo").click()
        page.wait_for_url(f"**/reviews/{second}")
        page.get_by_role("button", name="Approve").click()
        page.wait_for_url("**done=*")
    assert site.working.reviews("T-1")[0]["verdict"] == "revise"
    assert site.working.reviews("T-2")[-1]["verdict"] == "approve"


def test_the_number_that_waits_grows_without_a_reload(site: Site, address: str, inside: Page) -> None:
    site.review("T-1")
    inside.goto(address)
    expect(inside.locator("[data-waiting]")).to_have_text("1")
    hint = inside.get_by_role("link", name="1 new review: show it")
    expect(hint).not_to_be_visible()
    site.review("T-2")
    inside.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(inside.locator("[data-waiting]")).to_have_text("2")
    hint.click()
    expect(inside.get_by_role("link", name="Title of T-2")).to_be_visible()


def test_setting_up_and_signing_in_with_a_form(site: Site, address: str, page: Page) -> None:
    from board.access import links

    with site.working.board.db.write() as tx:
        token = links.owner_link(tx)
    page.goto(f"{address}/setup/{token}")
    page.get_by_label("Mail address").fill("me@example.org")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Make owner and sign in").click()
    expect(page.get_by_text("Welcome.")).to_be_visible()
    page.get_by_role("button", name="简体中文").click()
    expect(page.get_by_role("heading", name="待审核")).to_be_visible()
    page.get_by_role("button", name="退出登录").click()
    expect(page.get_by_text("您已退出登录。")).to_be_visible()
    page.goto(f"{address}/tasks?q=x")
    page.get_by_label("邮箱地址").fill("me@example.org")
    page.get_by_label("密码").fill("correct horse battery")
    page.get_by_role("button", name="登录").click()
    page.wait_for_url(f"{address}/tasks?q=x")
