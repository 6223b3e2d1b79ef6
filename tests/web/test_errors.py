"""Errors of pages are pages, and every answer carries the strict headers."""

import logging

import pytest

from board.review import read
from board.web.security import HEADERS
from tests.web.conftest import Site

ADDRESSES = ["/", "/login", "/docs", "/nothing", "/tasks/nothing", "/reviews/x", "/static/x/app.js", "/setup/x"]


@pytest.mark.parametrize("path", ADDRESSES)
def test_every_page_carries_the_policy(site: Site, path: str) -> None:
    for visitor in (site.visitor(), site.stranger()):
        headers = visitor.get(path).headers
        own_caching = {"cache-control"} if path.startswith("/static") else set()
        assert {name: headers[name] for name in HEADERS.keys() - own_caching} == {
            name: HEADERS[name] for name in HEADERS.keys() - own_caching
        }


def test_no_page_holds_a_script_or_a_style(site: Site) -> None:
    review = site.review()
    visitor = site.visitor()
    for path in ("/", f"/reviews/{review}", "/tasks", "/tasks/T-1", "/docs", "/settings/types", "/login"):
        page = visitor.get(path).text
        assert " style=" not in page
        assert "<style" not in page
        assert " onclick" not in page
        assert page.count("<script") == page.count('<script type="module" src="/static/')


def test_a_wrong_address_is_a_page_for_people_and_json_for_programs(site: Site) -> None:
    answer = site.visitor().get("/nothing")
    assert answer.status_code == 404
    assert "Nothing here" in answer.text
    assert answer.headers["x-request-id"] in answer.text
    assert "这里什么也没有" in site.visitor("viewer", lang="zh-CN").get("/tasks/nothing").text
    answer = site.visitor().get("/api/v1/nothing")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")
    assert site.stranger().client.put("/tasks").status_code == 405
    assert site.visitor().get("/?cursor=rubbish").status_code == 422


def test_a_fault_of_ours_says_no_more_than_its_reference(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the secret of the house")

    visitor = site.visitor()
    visitor.client.app  # noqa: B018 - the application is built before it is broken
    monkeypatch.setattr(read, "inbox", broken)
    quiet = visitor.client
    quiet._transport.raise_server_exceptions = False  # type: ignore[attr-defined]
    with caplog.at_level(logging.ERROR):
        answer = quiet.get("/", headers={"X-Request-Id": "ref-77"})
    assert answer.status_code == 500
    assert "ref-77" in answer.text
    assert "secret of the house" not in answer.text
    assert "Traceback" not in answer.text
    assert answer.headers["content-security-policy"] == HEADERS["content-security-policy"]
    assert "ref-77" in caplog.text


def test_static_files_are_kept_under_their_version_only(site: Site) -> None:
    static = site.app.state.static
    answer = site.stranger().get(f"{static}/app.js")
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-type"].startswith("text/javascript")
    assert site.stranger().get("/static/older/app.js").headers["cache-control"] == "no-cache"
    assert site.stranger().get(f"{static}/../visit.py").status_code == 404
    assert site.stranger().get(f"{static}/%2e%2e/visit.py").status_code == 404


def test_the_api_is_described_on_a_page_of_our_own(site: Site) -> None:
    page = site.stranger().get("/docs").text
    for path, methods in site.app.openapi()["paths"].items():
        assert path in page
        assert all(method.upper() in page for method in methods)
    assert "payload_schema" not in page
    assert "on_duplicate" in page
