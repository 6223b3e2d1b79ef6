"""A task's page in a real Chromium while the task runs: it changes without being loaded again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from board.ports import Job, Outcome, Success
from tests.rig.asgi import serve
from tests.rig.working import Gate, OpenWorking, Probe
from tests.web.conftest import Site

EVIL = '<img src=x onerror="document.title=1"><script>document.title="hit"</script>\u202e&amp; 字'


class Steps:
    """A handler that goes on step by step, as the test lets it."""

    def __init__(self) -> None:
        self.gates = [Gate() for _ in range(3)]

    async def run(self, job: Job) -> Outcome:
        await job.progress(30, "Reading the mail")
        await job.text("Dear customer, ")
        await self.gates[0].passed()
        await job.text(EVIL)
        await job.progress(60, EVIL)
        await self.gates[1].passed()
        return Success(result={"label": "complaint"})


@pytest.fixture
def steps() -> Steps:
    return Steps()


@pytest.fixture
def site(working_sqlite: OpenWorking, steps: Steps) -> Site:
    working = working_sqlite(Probe(steps.run))
    working.type("trial", "probe")
    working.type("direct", "none")
    return Site(working)


@pytest.fixture
def inside(site: Site, page: Page) -> Iterator[Page]:
    """Signed in. A mark in the window shows that the page was never loaded again."""
    with serve(site.app) as url:
        site.working.board.settings.public_url = url
        visitor = site.visitor("owner")
        page.context.add_cookies(
            [{"name": "board_session", "value": visitor.client.cookies["board_session"], "url": url}]
        )
        page.goto(f"{url}/tasks")
        yield page
        page.goto("about:blank")


def show(site: Site, page: Page, task_id: str) -> None:
    page.goto(f"{site.working.board.settings.public_url}/tasks/{task_id}")
    page.evaluate("window.stayed = true")


def stayed(page: Page) -> bool:
    return bool(page.evaluate("window.stayed === true"))


def test_progress_text_and_result_appear_by_themselves(site: Site, steps: Steps, inside: Page) -> None:
    site.working.submit("T-1")
    site.working.wait("T-1", "running")
    show(site, inside, "T-1")
    now = inside.locator("[data-now]")
    expect(now.locator("[data-message]")).to_have_text("Reading the mail")
    expect(now.locator("progress")).to_have_attribute("value", "30")
    expect(now.locator("[data-text]")).to_have_text("Dear customer, ")
    steps.gates[0].open()
    seen = EVIL.replace("\u202e", "")
    expect(now.locator("[data-text]")).to_have_text(f"Dear customer, {seen}")
    expect(now.locator("[data-message]")).to_have_text(seen)
    assert now.locator("img, script").count() == 0
    steps.gates[1].open()
    expect(inside.locator("[data-marks] .chip")).to_have_text("Done")
    expect(inside.locator(".output")).to_contain_text("complaint")
    expect(inside.locator("[data-now]")).to_have_count(0)
    expect(inside.locator(".timeline .event-done")).to_be_visible()
    assert inside.title().startswith("Task")
    assert stayed(inside)
    site.working.until(lambda: len(site.working.board.signals.callers) == 0)


def test_a_task_that_waits_is_seen_to_begin_and_to_be_cancelled(site: Site, steps: Steps, inside: Page) -> None:
    site.working.submit("T-1", run_after="2100-01-01T00:00:00Z")
    show(site, inside, "T-1")
    expect(inside.locator("[data-marks] .chip")).to_have_text("Pending")
    site.working.cancel("T-1")
    expect(inside.locator("[data-marks] .chip")).to_have_text("Cancelled")
    expect(inside.locator("summary", has_text="Requeue")).to_be_visible()
    assert stayed(inside)


def test_who_types_in_the_page_is_not_disturbed(site: Site, steps: Steps, inside: Page) -> None:
    site.working.submit("T-1")
    site.working.wait("T-1", "running")
    show(site, inside, "T-1")
    inside.locator("summary", has_text="Cancel task").click()
    field = inside.get_by_label("Reason (optional)")
    field.fill("I am just wri")
    for gate in steps.gates:
        gate.open()
    expect(inside.locator("[data-marks] .chip")).to_have_text("Done")
    expect(field).to_have_value("I am just wri")
    expect(field).to_be_focused()
    inside.keyboard.press("Escape")
    inside.locator("h1").click()
    expect(inside.locator("summary", has_text="Cancel task")).to_have_count(0, timeout=10_000)
    assert stayed(inside)


def test_without_a_stream_the_page_is_asked_for(site: Site, steps: Steps, inside: Page) -> None:
    """A proxy that knows no streams, for instance."""
    inside.route("**/live", lambda route: route.fulfill(status=502, body="no"))
    inside.route("**/static/**/follow.js", _faster)
    site.working.submit("T-1")
    site.working.wait("T-1", "running")
    show(site, inside, "T-1")
    for gate in steps.gates:
        gate.open()
    expect(inside.locator("[data-marks] .chip")).to_have_text("Done")
    assert stayed(inside)


def _faster(route: Any) -> None:
    answer = route.fetch()
    route.fulfill(response=answer, body=answer.text().replace("AGAIN = 10_000", "AGAIN = 300"))


def test_only_who_may_see_the_task_may_follow_it(site: Site) -> None:
    site.working.submit("T-1", "direct")
    assert site.stranger().get("/tasks/T-1/live").status_code == 303
    assert site.visitor("viewer").get("/tasks/nobody/live").status_code == 404
