"""Forms count only when they come from the board's own pages."""

import pytest

from tests.web.conftest import ORIGIN, Site


def status(site: Site) -> str:
    return str(site.working.task("T-1")["status"])


def test_a_form_without_its_token_does_nothing_and_keeps_what_was_typed(site: Site) -> None:
    review = site.review()
    visitor = site.visitor("reviewer")
    fields = visitor.form(f"/reviews/{review}", "revise") | {"instruction": "Shorter, please"}
    for token in ("", "wrong", site.visitor("owner").csrf):
        answer = visitor.post(f"/reviews/{review}/decision", **(fields | {"csrf": token}))
        assert answer.status_code == 403
        assert "out of date" in answer.text
        assert "Shorter, please" in answer.text
        assert fields["content_hash"] not in answer.text
    assert status(site) == "needs_review"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"},
        {"Origin": ORIGIN, "Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_on_another_site_does_nothing(site: Site, headers: dict[str, str]) -> None:
    review = site.review()
    visitor = site.visitor("reviewer")
    fields = visitor.form(f"/reviews/{review}", "approve")
    answer = visitor.post(f"/reviews/{review}/decision", headers=headers, **fields)
    assert answer.status_code == 403
    assert "another address" in answer.text
    assert status(site) == "needs_review"
    answer = visitor.post("/logout", headers=headers)
    assert answer.status_code == 403
    assert visitor.get("/").status_code == 200, "still signed in"


def test_signing_in_from_another_site_is_refused(site: Site) -> None:
    answer = site.stranger().post(
        "/login", headers={"Sec-Fetch-Site": "cross-site"}, email="a@example.org", password="x"
    )
    assert answer.status_code == 403


@pytest.mark.parametrize("host", ["board.lan:8000", "127.0.0.1:8000"])
def test_the_address_in_the_browser_counts_as_ours(site: Site, host: str) -> None:
    review = site.review()
    visitor = site.visitor("reviewer")
    fields = visitor.form(f"/reviews/{review}", "approve")
    answer = visitor.post(f"/reviews/{review}/decision", headers={"Host": host, "Origin": f"http://{host}"}, **fields)
    assert answer.status_code == 303


def test_only_forms_are_taken_and_only_so_much(site: Site) -> None:
    visitor = site.visitor()
    answer = visitor.client.post("/logout", json={"csrf": visitor.csrf})
    assert (answer.status_code, answer.headers["content-type"]) == (415, "text/html; charset=utf-8")
    answer = site.stranger().post("/login", email="a@example.org", password="x" * 70_000)
    assert answer.status_code == 413
    assert "Too much text" in answer.text
    assert site.stranger().post("/login", **{f"f{n}": "1" for n in range(400)}).status_code == 400


def test_when_the_session_has_ended_the_text_is_kept(site: Site) -> None:
    review = site.review()
    visitor = site.visitor("reviewer")
    fields = visitor.form(f"/reviews/{review}", "revise") | {"instruction": "A long thought"}
    visitor.post("/logout")
    visitor.client.cookies.delete("board_session")
    answer = visitor.post(f"/reviews/{review}/decision", headers={"Referer": f"{ORIGIN}/reviews/{review}"}, **fields)
    assert answer.status_code == 401
    assert "A long thought" in answer.text
    assert f'name="next" value="/reviews/{review}"' in answer.text
    assert status(site) == "needs_review"
