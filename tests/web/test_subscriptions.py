"""The page of subscriptions: the last result of each, sent again, removed."""

from __future__ import annotations

from board.effects.subscriptions import Event
from tests.effects.subscribing import rows, subscribe
from tests.rig.receiver import Receiver, Reply
from tests.web.conftest import Site

PAGE = "/settings/subscriptions"


def test_an_owner_sees_the_last_result_sends_again_and_removes(site: Site, receiver: Receiver) -> None:
    receiver.default = Reply(status=403, body=b"who are you")
    it = subscribe(site.working, f"{receiver.url}/hook?token=t0p", Event.NEEDS_REVIEW)
    owner = site.visitor("owner")
    assert "nothing yet" in owner.get(PAGE).text
    site.review()
    site.working.until(lambda: [row["status"] for row in rows(site.working)] == ["rejected"])
    page = owner.get(PAGE).text
    assert "HTTP 403" in page
    assert "1 event was given up." in page
    assert "t0p" not in page
    receiver.default = Reply()
    assert owner.post(f"{PAGE}/{it}/resend").headers["location"] == PAGE
    site.working.until(lambda: [row["status"] for row in rows(site.working)] == ["confirmed"])
    page = owner.get(PAGE).text
    assert "Last arrived" in page
    assert "given up" not in page.replace("What was given up in the last three days goes out again now.", "")
    assert owner.post(f"{PAGE}/{it}/remove").status_code == 303
    assert "Nobody has subscribed" in owner.get(PAGE).text
    assert owner.post(f"{PAGE}/{it}/remove").status_code == 404


def test_one_that_is_switched_off_says_why(site: Site, receiver: Receiver) -> None:
    receiver.default = Reply(status=410)
    subscribe(site.working, receiver.url, Event.NEEDS_REVIEW)
    site.review()
    site.working.until(lambda: [row["status"] for row in rows(site.working)] == ["rejected"])
    page = site.visitor("owner").get(PAGE).text
    assert "Switched off" in page
    assert "wants no more calls" in page
    assert "Switch on and send again" in page


def test_only_who_may_change_settings_sees_it(site: Site) -> None:
    operator = site.visitor("operator")
    assert operator.get(PAGE).status_code == 403
    assert operator.post(f"{PAGE}/s1/remove").status_code == 403
    assert PAGE not in operator.get("/settings/connections").text
    assert PAGE in site.visitor("owner").get("/settings/connections").text
