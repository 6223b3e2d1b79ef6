"""Set-up links, signing in and out, the language switch."""

import pytest

from board.access import links, users
from board.access.throttle import LIMIT
from tests.web.conftest import PASSWORD, Site, Visitor


def owner_link(site: Site) -> str:
    with site.working.board.db.write() as tx:
        token = links.owner_link(tx)
    assert token
    return f"/setup/{token}"


def test_the_first_owner_sets_up_once(site: Site) -> None:
    path = owner_link(site)
    stranger = site.stranger()
    assert "Make the first owner" in stranger.get(path).text
    assert "set-up link" in stranger.get("/login").text
    for email, password, words in (
        ("nobody", PASSWORD, "not a mail address"),
        ("me@example.org", "tooshort1", "at least 10 characters"),
    ):
        answer = stranger.post(path, email=email, password=password)
        assert answer.status_code == 422
        assert words in answer.text
        assert f'value="{email}"' in answer.text
        assert password not in answer.text
    answer = stranger.post(path, email="Me@Example.org", password=f" {PASSWORD} ")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    page = stranger.get("/")
    assert page.status_code == 200
    assert "Welcome" in page.text
    assert "me@example.org" in page.text
    assert "Welcome" not in stranger.get("/").text
    assert site.stranger().get(path).status_code == 410
    assert site.stranger().post(path, email="other@example.org", password=PASSWORD).status_code == 410
    assert "set-up link" not in site.stranger().get("/login").text
    assert site.stranger().post("/login", email="me@example.org", password=f" {PASSWORD} ").status_code == 303


def test_a_users_own_link_sets_the_password_of_that_user(site: Site) -> None:
    with site.working.board.db.write() as tx:
        token = links.user_link(tx, users.add(tx, "li@example.org", "reviewer").id)
    stranger = site.stranger()
    assert "li@example.org" in stranger.get(f"/setup/{token}").text
    answer = stranger.post(f"/setup/{token}", email="somebody@else.example", password=PASSWORD)
    assert answer.status_code == 303
    assert "li@example.org" in stranger.get("/").text


@pytest.fixture
def li(site: Site) -> Visitor:
    with site.working.board.db.write() as tx:
        users.set_password(tx, users.add(tx, "li@example.org", "reviewer").id, PASSWORD)
    return site.stranger()


def test_signing_in_leads_where_one_wanted_to_go(site: Site, li: Visitor) -> None:
    answer = li.get("/tasks?status=failed&q=a+b")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2Ftasks%3Fstatus%3Dfailed%26q%3Da%2Bb"
    assert 'value="/tasks?status=failed&amp;q=a+b"' in li.get(answer.headers["location"]).text
    answer = li.post("/login", email=" LI@example.org", password=PASSWORD, next="/tasks?status=failed&q=a+b")
    assert answer.headers["location"] == "/tasks?status=failed&q=a+b"
    assert li.get("/login?next=/decided").headers["location"] == "/decided"


@pytest.mark.parametrize(
    "next",
    ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:1", "\t//evil.example", ""],
)
def test_signing_in_never_leads_elsewhere(site: Site, li: Visitor, next: str) -> None:
    answer = li.post("/login", email="li@example.org", password=PASSWORD, next=next)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_a_wrong_password_and_an_unknown_address_look_alike_and_are_braked(site: Site, li: Visitor) -> None:
    for email in ("li@example.org", "nobody@example.org"):
        answer = li.post("/login", email=email, password="wrong", next="/tasks")
        assert answer.status_code == 401
        assert "The mail address or the password is wrong." in answer.text
        assert 'name="next" value="/tasks"' in answer.text
    for _ in range(LIMIT - 1):
        li.post("/login", email="li@example.org", password="wrong")
    answer = li.post("/login", email="li@example.org", password=PASSWORD)
    assert answer.status_code == 429
    assert "Too many failed sign-ins" in answer.text
    assert int(answer.headers["retry-after"]) > 60


@pytest.mark.parametrize(("public_url", "secure"), [("https://board.example.org", True), ("http://board.lan", False)])
def test_the_session_cookie_is_kept_from_scripts_and_other_sites(
    site: Site, li: Visitor, public_url: str, secure: bool
) -> None:
    site.working.board.settings.public_url = public_url
    cookie = li.post("/login", email="li@example.org", password=PASSWORD).headers["set-cookie"]
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=lax", "path=/", "max-age=1209600"} <= parts
    assert ("secure" in parts) is secure


def test_signing_out_ends_the_session_for_good(site: Site) -> None:
    visitor = site.visitor("viewer")
    token = visitor.client.cookies["board_session"]
    assert visitor.post("/logout").headers["location"] == "/login"
    visitor.client.cookies.set("board_session", token)
    assert visitor.get("/").status_code == 303


def test_a_session_in_use_is_prolonged_once_a_day(site: Site) -> None:
    visitor = site.visitor("viewer")
    assert "board_session" not in visitor.get("/").headers.get("set-cookie", "")
    site.working.at(2 * 86400)
    assert "board_session" in visitor.get("/").headers["set-cookie"]
    site.working.at(15 * 86400)
    assert visitor.get("/").status_code == 200


def test_the_language_is_the_users_then_the_cookies_then_the_browsers(site: Site) -> None:
    stranger = site.stranger(lang="zh-TW,zh;q=0.9,en;q=0.8")
    assert '<html lang="zh-CN">' in stranger.get("/login").text
    assert '<html lang="en">' in site.stranger(lang="fr,de;q=0.5").get("/login").text, "the installation's"
    assert '<html lang="en">' in site.stranger(lang="zh;q=0.1,en").get("/login").text
    answer = stranger.post("/language", lang="en", next="/login?next=/tasks")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=/tasks")
    assert '<html lang="en">' in stranger.get("/login").text
    person = site.visitor("reviewer")
    person.post("/language", lang="zh_CN", next="/")
    person.client.cookies.delete("board_lang")
    assert "没有待审核的任务" in person.get("/").text
    assert "没有待审核的任务" in site.visitor("reviewer").get("/").text, "the user's own, in every browser"
    assert person.post("/language", lang="../x", next="//evil.example").headers["location"] == "/"
    assert '<html lang="zh-CN">' in person.get("/").text
