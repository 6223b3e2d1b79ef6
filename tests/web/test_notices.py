"""The pages of notices and alerts: everybody for himself by mail, an administrator for all."""

from __future__ import annotations

from board.notices import alerts
from tests.web.conftest import Site

PAGE = "/settings/notices"
POST = {"name": "post", "kind": "mail", "url": "smtps://mail.example.org", "sender": "board@example.org"}
TEAM = {"name": "team", "kind": "slack", "url": "https://hooks.slack.com/services/T/B/x"}


def test_a_reviewer_is_told_by_mail_and_removes_it_again(site: Site) -> None:
    reviewer = site.visitor("reviewer")
    assert "There is no way to tell you yet" in reviewer.get(PAGE).text
    site.working.apply(connections=[POST, TEAM])
    page = reviewer.get(PAGE).text
    assert "post (mail)" in page
    assert "team (slack)" not in page
    refused = reviewer.post(PAGE, connection="post")
    assert refused.status_code == 422
    assert "Choose at least one thing" in refused.text
    hours = {"quiet_from": "22:00", "quiet_to": "07:00", "zone": "Asia/Shanghai"}
    made = reviewer.post(PAGE, about="review_asked", connection="post", **hours)
    assert made.headers["location"] == PAGE
    page = reviewer.get(PAGE).text
    assert "22:00 – 07:00" in page
    assert reviewer.post(PAGE, about="failed", connection="team").status_code == 403
    assert site.visitor("viewer").post(f"{PAGE}/1/remove").status_code == 404
    assert reviewer.post(f"{PAGE}/1/remove").status_code == 303
    assert "22:00 – 07:00" not in reviewer.get(PAGE).text


def test_an_owner_tells_everybody_by_a_chat(site: Site) -> None:
    site.working.apply(connections=[TEAM])
    owner = site.visitor("owner")
    made = owner.post(PAGE, about="alert", connection="team", audience="*")
    assert made.status_code == 303
    assert "everybody" in owner.get(PAGE).text


def test_what_rings_is_shown_with_its_rules(site: Site) -> None:
    viewer = site.visitor("viewer")
    assert "Nothing has rung" in viewer.get("/ops/alerts").text
    with site.working.board.db.write() as tx:
        alerts.evaluate(tx, [("circuit_open", "dify-leads", 1.0)])
    page = viewer.get("/ops/alerts").text
    assert "A connection is shut because it fails" in page
    assert "dify-leads" in page
    assert "queue_depth" in page
