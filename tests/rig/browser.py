"""A real Chromium, driven by Playwright. Pages must work without the internet and under the strict policy.

Playwright lives for one test only: while its synchronous interface is open, no asynchronous test could run.
"""

import os
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.rig.need import missing

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",  # Chromium's sandbox refuses root; only our own pages are opened
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
_REPORT = pytest.StashKey[pytest.TestReport]()


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Chromium: BOARD_TEST_CHROMIUM, or the one that is installed."""
    if path := os.environ.get("BOARD_TEST_CHROMIUM"):
        return path
    for name in NAMES:
        if path := shutil.which(name):
            return path
    missing("Chromium", "install it (on Debian: apt install chromium), or set BOARD_TEST_CHROMIUM")


@pytest.fixture
def browser(chromium: str) -> Iterator[Browser]:
    """A browser of this test; `browser.new_context(locale="zh-CN")` is a second person."""
    try:
        playwright = sync_playwright().start()
    except Exception as error:  # it raises nothing more exact
        missing("Playwright's driver", f"{error} (on Debian: apt install libatomic1)")
    running = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
    yield running
    running.close()
    playwright.stop()


@pytest.fixture
def page(browser: Browser, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page in English, 1280 x 800. The test fails where a script failed, the policy was broken or something was
    loaded from elsewhere; a picture of a failed test lies in its folder."""
    opened = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 800}).new_page()
    problems = watch(opened)
    yield opened
    report = request.node.stash.get(_REPORT, None)
    if report is not None and report.failed:
        opened.screenshot(path=tmp_path / "failed.png", full_page=True)
    assert problems == []


def watch(page: Page) -> list[str]:
    """A list that fills with what goes wrong in the page: script errors, broken policy, requests to other hosts."""
    problems: list[str] = []

    def on_console(level: str, text: str) -> None:
        # A 4xx answer is also an "error" there; whether it was right is the test's business.
        if level == "error" and not text.startswith("Failed to load resource"):
            problems.append(text)

    def on_request(url: str) -> None:
        address = urlsplit(url)
        if address.scheme in ("http", "https", "ws", "wss") and address.hostname not in ("127.0.0.1", "localhost"):
            problems.append(f"loaded from elsewhere: {url}")

    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: on_console(message.type, message.text))
    page.on("request", lambda request: on_request(request.url))
    return problems


@pytest.fixture
def screenshot(tmp_path: Path) -> Callable[[Page, str], Path]:
    """`screenshot(page, "inbox")` saves a picture into BOARD_TEST_SCREENSHOTS, or the test's folder; its path."""
    folder = Path(os.environ.get("BOARD_TEST_SCREENSHOTS", tmp_path))

    def take(page: Page, name: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.png"
        page.screenshot(path=path, full_page=True)
        return path

    return take


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember how the test went, for the picture of a failed page."""
    report = yield
    if report.when == "call":
        item.stash[_REPORT] = report
    return report
