"""A board with pages, in this process, and people who visit them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import Response
from playwright.sync_api import BrowserContext, Page
from starlette.testclient import TestClient

from board.access import sessions, users
from board.app import build_app
from board.ports import Job, Outcome, UnknownOutcome
from tests.rig.asgi import serve
from tests.rig.working import OpenWorking, Probe, WorkingBoard

PASSWORD = "correct horse battery"
ORIGIN = "http://127.0.0.1:8000"  # the default of BOARD_PUBLIC_URL
JUDGED = {"summary": "summary", "advice": "advice", "confidence": "confidence", "reasons": "reasons", "risks": "risks"}


async def lost(job: Job) -> Outcome:
    """Sends something, and nobody can tell what became of it."""
    await job.send(kind="test.call", target="https://bank.example.org/pay", request=b"{}")
    return UnknownOutcome("The answer was lost.")


@dataclass
class Visitor:
    """A browser with one person in front of it, without JavaScript."""

    client: TestClient
    csrf: str = ""
    email: str = ""

    def get(self, path: str, **more: Any) -> Response:
        return self.client.get(path, **more)

    def post(self, path: str, headers: Any = None, **fields: Any) -> Response:
        """As a form on one of our pages: with its token and the browser's Origin. `fields` may overrule."""
        data = {"csrf": self.csrf} | fields
        return self.client.post(path, data=data, headers={"Origin": ORIGIN} | (headers or {}))

    def form(self, path: str, verdict: str) -> dict[str, str]:
        """The hidden fields of one decision on a review's page."""
        return hidden_fields(self.get(path).text, verdict)

    def decide(self, review: int, verdict: str, **typed: str) -> Response:
        """Open the review's page, fill in its form and send it."""
        return self.post(f"/reviews/{review}/decision", **(self.form(f"/reviews/{review}", verdict) | typed))


def hidden_fields(page: str, verdict: str) -> dict[str, str]:
    """What the form for this verdict sends by itself."""
    for form in re.findall(r"<form[^>]*/decision.*?</form>", page, re.S):
        fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))
        if fields.get("verdict") == verdict:
            return fields
    raise AssertionError(f"the page offers no form for {verdict}")


class Site:
    """`working` is the board; `visitor("reviewer")` is somebody with that role."""

    def __init__(self, working: WorkingBoard) -> None:
        self.working = working
        self.app: FastAPI = build_app(working.board)

    def stranger(self, lang: str = "en", **more: Any) -> Visitor:
        return Visitor(
            TestClient(self.app, base_url=ORIGIN, follow_redirects=False, headers={"Accept-Language": lang}, **more)
        )

    def visitor(self, role: str = "owner", name: str = "", lang: str = "en") -> Visitor:
        """Signed in. The password is set for `name@example.org`, so that he could sign in himself, too."""
        email = f"{name or role}@example.org"
        with self.working.board.db.write() as tx:
            person = users.find_by_email(tx, email) or users.add(tx, email, role)
            token, csrf = sessions.start(tx, person.id)
        visitor = self.stranger(lang)
        visitor.client.cookies.set("board_session", token)
        visitor.csrf, visitor.email = csrf, email
        return visitor

    def review(self, task_id: str = "T-1", **payload: Any) -> int:
        """A task whose output (its payload) waits for a person; the id of the review."""
        self.working.submit(task_id, "judge", title=f"Title of {task_id}", payload={"text": "Hello."} | payload)
        self.working.wait(task_id, "needs_review")
        return int(self.working.reviews(task_id)[-1]["id"])


@pytest.fixture
def site(working_sqlite: OpenWorking) -> Site:
    """Types: judge (always reviewed, no action), direct (straight to a person), pay (its outcome is unknown)."""
    working = working_sqlite(Probe(lost, name="pay", side_effects=True))
    always = {"when": "always"}
    working.type("judge", "echo", handler={"judgement": JUDGED}, review=always, title={"en": "Judge", "zh_CN": "评判"})
    working.type("direct", "none")
    working.type("pay", "pay")
    return Site(working)


@pytest.fixture
def address(site: Site) -> Iterator[str]:
    with serve(site.app) as url:
        site.working.board.settings.public_url = url
        yield url


def signed_in(site: Site, context: BrowserContext, address: str, role: str = "owner") -> None:
    visitor = site.visitor(role)
    context.add_cookies([{"name": "board_session", "value": visitor.client.cookies["board_session"], "url": address}])


@pytest.fixture
def inside(site: Site, address: str, page: Page) -> Page:
    """The page of the rig, signed in as owner: it notices script errors and broken policy by itself."""
    signed_in(site, page.context, address)
    return page
