"""The pages of outside calls: what is in question, what is known, and a person's word about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from board.access.rights import key_actor
from board.effects.steps import Step
from board.worker.outside_calls import Wish
from tests.effects.test_operation_keys import notes
from tests.rig.asgi import serve
from tests.rig.browser import watch
from tests.rig.receiver import Receiver, Reply
from tests.web.conftest import Site

N8N = key_actor("n8n", ["work"])


def announced(site: Site, key: str = "invoice:7", said: str | None = "unknown", **more: Any) -> int:
    """A call of an outside program; its number."""
    calls = site.working.board.outside_calls
    made = calls.reserve(N8N, Wish(key, more.pop("target", "Billing"), "hash", **more)).operation
    if said is not None:
        calls.step(N8N, made["id"], Step(said, message="The line was cut."))  # type: ignore[arg-type]
    return int(made["id"])


def paying(site: Site) -> int:
    """The call of a task that waits for a person's word; its number."""
    site.working.submit("T-1", "pay", title="Pay the rent")
    site.working.wait("T-1", "needs_review")
    return int(site.working.operations("T-1")[0]["id"])


def test_what_is_in_question_is_listed_counted_and_leads_to_its_page(site: Site) -> None:
    first, second = announced(site), paying(site)
    announced(site, "invoice:8", "confirmed")
    announced(site, "invoice:9", None)
    page = site.visitor("viewer").get("/operations").text
    assert re.findall(r'href="/operations/(\d+)"', page) == [str(second), str(first)]
    assert '<b class="count warn">2</b>' in page
    assert "The line was cut." in page
    assert "https://bank.example.org/pay" in page
    everything = site.visitor("viewer").get("/operations?show=all").text
    assert len(re.findall(r'href="/operations/\d+"', everything)) == 4
    assert "invoice:9" in site.visitor("viewer").get("/operations?show=open").text
    assert "invoice:8" in site.visitor("viewer").get("/operations?show=confirmed").text


def test_nothing_in_question_says_so(site: Site) -> None:
    page = site.visitor().get("/operations").text
    assert "Nothing is in question" in page
    assert "count warn" not in page


def test_one_call_shows_all_that_is_known(site: Site) -> None:
    number = announced(site, execution_id="run-4711")
    page = site.visitor("reviewer").get(f"/operations/{number}").text
    for shown in ("Billing", "invoice:7", "run-4711", "n8n", "The line was cut.", "It did not happen"):
        assert shown in page
    assert "Its program may do it when it asks next." in page
    assert site.visitor("viewer").get(f"/operations/{number}").text.count("<form") < page.count("<form")
    assert site.visitor().get("/operations/999").status_code == 404
    assert site.visitor().get("/operations/x").status_code == 404


@pytest.mark.parametrize(
    ("verdict", "status"), [("happened", "done"), ("not_happened", "running"), ("drop", "cancelled")]
)
def test_the_word_about_a_call_of_a_task_decides_its_review(site: Site, verdict: str, status: str) -> None:
    number = paying(site)
    reviewer = site.visitor("reviewer")
    answer = reviewer.post(f"/operations/{number}/resolve", verdict=verdict, reason="I have looked.", reference="pay-9")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/operations/{number}")
    if verdict == "not_happened":
        site.working.until(lambda: site.working.operations("T-1")[0]["tries"] == 2)
    else:
        site.working.wait("T-1", status)
        page = reviewer.get(f"/operations/{number}").text
        assert "Your answer is kept" in page
        assert "I have looked." in page
        assert "Keep this answer" not in page
        assert ("pay-9" in page) is (verdict == "happened")
    review = site.working.reviews("T-1")[0]
    assert (review["verdict"], review["decider"], review["channel"]) == (verdict, f"user:{reviewer.email}", "web")


def test_who_has_found_the_result_hands_it_in(site: Site) -> None:
    path = f"/operations/{paying(site)}/resolve"
    reviewer = site.visitor("reviewer")
    broken = reviewer.post(path, verdict="happened", reason="It is there.", result="{paid: yes}")
    assert broken.status_code == 422
    assert "This is not JSON" in broken.text
    assert "{paid: yes}" in broken.text
    assert reviewer.post(path, verdict="happened", reason="It is there.", result='{"paid": 700}').status_code == 303
    assert site.working.wait("T-1", "done")
    assert site.working.data("T-1")["result"] == {"paid": 700}


def told(site: Site, receiver: Receiver) -> int:
    """A callback that was refused; its number."""
    receiver.reply(Reply(status=404))
    site.working.type("told", use="echo")
    site.working.submit("T-2", "told", callback_url=receiver.url)
    site.working.until(lambda: [it["status"] for it in site.working.operations("T-2")] == ["rejected"])
    return int(site.working.operations("T-2")[0]["id"])


def test_a_callback_is_sent_again_by_who_may(site: Site, receiver: Receiver) -> None:
    number = told(site, receiver)
    path = f"/operations/{number}"
    for role in ("viewer", "reviewer"):
        assert f'action="{path}/resend"' not in site.visitor(role).get(path).text
        assert site.visitor(role).post(f"{path}/resend").status_code == 403
    operator = site.visitor("operator")
    assert f'action="{path}/resend"' in operator.get(path).text
    answer = operator.post(f"{path}/resend")
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    first, second = receiver.wait_for(2)
    assert (first.body, first.headers["webhook-id"]) == (second.body, second.headers["webhook-id"])
    assert operator.post("/operations/999/resend").status_code == 404


def test_what_is_no_callback_offers_no_button_and_says_so(site: Site) -> None:
    number = paying(site)
    operator = site.visitor("operator")
    assert "/resend" not in operator.get(f"/operations/{number}").text
    refused = operator.post(f"/operations/{number}/resend")
    assert refused.status_code == 409
    assert "Only callbacks are sent again like that" in refused.text


def test_a_call_without_a_task_is_answered_with_a_reason(site: Site) -> None:
    number = announced(site)
    reviewer = site.visitor("reviewer")
    path = f"/operations/{number}/resolve"
    missing = reviewer.post(path, verdict="happened", reference="INV-7")
    assert missing.status_code == 422
    assert "Say why" in missing.text
    assert 'value="INV-7"' in missing.text  # what was typed is kept
    assert "Say what you found" in reviewer.post(path, reason="I have looked.").text
    assert reviewer.post(path, verdict="happened", reference="INV-7", reason="It is there.").status_code == 303
    assert notes(site.working, "invoice:7")[-1] == ("resolved", "It is there.")
    late = site.visitor("reviewer", "late").post(path, verdict="drop", reason="Never mind.")
    assert late.status_code == 409
    assert "no longer open" in late.text or "Nothing is in question" in late.text


def test_who_may_not_decide_cannot_answer(site: Site) -> None:
    number = announced(site)
    refused = site.visitor("viewer").post(f"/operations/{number}/resolve", verdict="drop", reason="x")
    assert refused.status_code == 403
    assert site.visitor("reviewer").post(f"/operations/{number}/resolve", csrf="", verdict="drop").status_code in (
        400,
        403,
    )
    assert [kind for kind, _ in notes(site.working, "invoice:7")] == ["reserved", "unknown"]


def test_text_of_other_programs_stays_text(site: Site) -> None:
    """B075"""
    evil = "<img src=x onerror=alert(1)>\u202e"
    number = announced(site, "k", target=evil, execution_id=evil)
    for path in (f"/operations/{number}", "/operations"):
        page = site.visitor().get(path).text
        assert "<img" not in page
        assert "\u202e" not in page


# -- in a browser -------------------------------------------------------------------------------------------------


@pytest.fixture
def address(site: Site) -> Iterator[str]:
    with serve(site.app) as url:
        site.working.board.settings.public_url = url
        yield url


def test_on_a_narrow_screen_and_without_script_in_both_languages(
    site: Site, address: str, browser: Browser, screenshot: Callable[[Page, str], Path]
) -> None:
    announced(site, "invoice:customer-7:2026-11", target="Billing, customer 7", execution_id="4711-0")
    number = paying(site)
    site.working.at(16 * 60)
    announced(site, "crm:" + "an-unbroken-identifier-" * 6, "unknown", target="CRM " + "无间断" * 40)
    for locale, width, heading, answered in (
        ("en-US", 1280, "Outside calls", "Your answer is kept, with its reason."),
        ("zh-CN", 375, "外部调用", "您的说明及理由已保存。"),
        ("en-US", 375, "Outside calls", ""),
        ("zh-CN", 1280, "外部调用", ""),
    ):
        context = browser.new_context(
            locale=locale, viewport={"width": width, "height": 800}, java_script_enabled=bool(answered)
        )
        visitor = site.visitor("owner")
        cookie = {"name": "board_session", "value": visitor.client.cookies["board_session"], "url": address}
        context.add_cookies([cookie])  # type: ignore[list-item]
        page = context.new_page()
        problems = watch(page)
        page.goto(f"{address}/operations")
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)
        screenshot(page, f"operations-{locale}-{width}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.goto(f"{address}/operations/{number}")
        screenshot(page, f"operation-{locale}-{width}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if locale == "zh-CN" and answered:
            page.locator("input[value=drop]").check()
            expect(page.locator("input[name=reference]")).to_be_hidden()
            page.locator("textarea[name=reason]").fill("房东说不用了。")
            page.locator("form button.primary:visible").click()
            expect(page.get_by_text(answered)).to_be_visible()
            screenshot(page, f"operation-answered-{locale}-{width}")
        assert problems == []
        context.close()


@pytest.mark.parametrize(
    ("locale", "again", "goes", "keep"),
    [
        ("en-US", "Send again", "The call goes out again now.", "Keep this answer"),
        ("zh-CN", "再次发送", "现在再次发送。", "保存说明"),
    ],
)
def test_in_a_browser_a_callback_goes_out_again_and_a_found_result_is_handed_in(
    site: Site,
    address: str,
    browser: Browser,
    receiver: Receiver,
    screenshot: Callable[[Page, str], Path],
    locale: str,
    again: str,
    goes: str,
    keep: str,
) -> None:
    sent, lost = told(site, receiver), paying(site)
    context = browser.new_context(locale=locale, viewport={"width": 375, "height": 800})
    cookie = {"name": "board_session", "value": site.visitor("owner").client.cookies["board_session"], "url": address}
    context.add_cookies([cookie])  # type: ignore[list-item]
    page = context.new_page()
    problems = watch(page)
    page.goto(f"{address}/operations/{sent}")
    screenshot(page, f"operation-resend-{locale}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.get_by_role("button", name=again).click()
    expect(page.get_by_text(goes)).to_be_visible()
    receiver.wait_for(2)
    page.goto(f"{address}/operations/{lost}")
    page.locator("input[value=drop]").check()
    expect(page.locator("textarea[name=result]")).to_be_hidden()
    page.locator("input[value=happened]").check()
    page.locator("textarea[name=result]").fill('{"paid": 700}')
    page.locator("textarea[name=reason]").fill("It is in the bank's list.")
    screenshot(page, f"operation-result-{locale}")
    page.get_by_role("button", name=keep).click()
    site.working.wait("T-1", "done")
    assert site.working.data("T-1")["result"] == {"paid": 700}
    assert problems == []
    context.close()
