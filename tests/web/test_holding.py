"""Taken, put aside, assigned and commented on the page of a review, without JavaScript."""

from board.access import groups
from tests.web.conftest import Site, Visitor


def hold(visitor: Visitor, review: int, do: str, **fields: str) -> int:
    return visitor.post(f"/reviews/{review}/hold", do=do, **fields).status_code


def test_a_review_is_taken_taken_over_and_given_back(site: Site) -> None:
    review = site.review()
    anna, ben = site.visitor("reviewer", "anna"), site.visitor("reviewer", "ben")
    assert hold(anna, review, "claim") == 303
    assert "You have taken this until" in anna.get(f"/reviews/{review}").text
    assert "anna@example.org has taken this until" in ben.get(f"/reviews/{review}").text
    refused = ben.post(f"/reviews/{review}/hold", do="claim")
    assert refused.status_code == 409
    assert "A colleague has taken this review." in refused.text
    answer = ben.decide(review, "approve")
    assert answer.status_code == 409
    assert "A colleague has taken this review." in answer.text
    assert site.working.task()["status"] == "needs_review"
    assert hold(ben, review, "take_over", note="I know this one.") == 303
    assert "You have taken this until" in ben.get(f"/reviews/{review}").text
    assert "I know this one." in anna.get(f"/reviews/{review}").text
    assert hold(ben, review, "release") == 303
    assert "has taken this until" not in anna.get(f"/reviews/{review}").text


def test_what_is_put_aside_is_on_a_page_of_its_own(site: Site) -> None:
    review = site.review()
    visitor = site.visitor("reviewer")
    assert hold(visitor, review, "snooze", hours="5") == 303  # none of those offered: nothing is done
    assert "Title of T-1" in visitor.get("/").text
    assert hold(visitor, review, "snooze", hours="4") == 303
    assert "Title of T-1" not in visitor.get("/").text
    aside = visitor.get("/snoozed").text
    assert "Title of T-1" in aside
    assert "Put aside until" in aside
    assert hold(visitor, review, "wake") == 303
    assert "Title of T-1" in visitor.get("/").text
    assert "Nothing is put aside" in visitor.get("/snoozed").text


def test_it_is_assigned_to_somebody_who_exists(site: Site) -> None:
    review = site.review()
    visitor = site.visitor("reviewer", "anna")
    answer = visitor.post(f"/reviews/{review}/hold", do="assign", assignee="nobody@example.org")
    assert answer.status_code == 409
    assert "no user and no group" in answer.text
    with site.working.board.db.write() as tx:
        groups.add(tx, "sales")
        groups.join(tx, "sales", "anna@example.org")
    assert hold(visitor, review, "assign", assignee="sales") == 303
    assert "Title of T-1" in visitor.get("/?mine=1").text
    assert "Title of T-1" not in site.visitor("reviewer", "ben").get("/?mine=1").text


def test_comments_are_shown_as_text_and_only_for_whoever_may_speak(site: Site) -> None:
    review = site.review()
    visitor, viewer = site.visitor("reviewer"), site.visitor("viewer")
    assert hold(visitor, review, "comment", text="<b>Look</b> at the price.") == 303
    assert hold(visitor, review, "comment", text="   ") == 303
    page = viewer.get(f"/reviews/{review}").text
    assert "&lt;b&gt;Look&lt;/b&gt; at the price." in page
    assert 'name="text"' not in page
    assert hold(viewer, review, "comment", text="No.") == 403
    assert hold(viewer, review, "claim") == 403
    assert site.working.kinds().count("note") == 1


def test_whom_a_comment_calls_is_marked(site: Site) -> None:
    review = site.review()
    anna = site.visitor("reviewer", "anna")
    with site.working.board.db.write() as tx:
        groups.add(tx, "sales")
    assert hold(anna, review, "comment", text="请@sales看 <b>a@b.org</b>") == 303
    page = anna.get(f"/reviews/{review}").text
    assert '请<strong class="mention">@sales</strong>看 &lt;b&gt;a@b.org&lt;/b&gt;' in page


def test_pages_say_whose_a_task_is_and_whom_an_event_is_for(site: Site) -> None:
    working = site.working
    working.type("judge", "echo", owner="sales", review={"when": "always", "due": "1h"})
    review = site.review()
    working.at(49 * 60)
    working.until(lambda: "review_reminder" in working.kinds())
    working.at(61 * 60)
    working.until(lambda: "review_overdue" in working.kinds())
    visitor = site.visitor("reviewer")
    task = visitor.get("/tasks/T-1").text
    for name in ("Owner", "Assigned to"):
        assert f'<dt>{name}</dt><dd class="wrap"><bdi>sales</bdi></dd>' in task
    for page in (task, visitor.get(f"/reviews/{review}").text):
        assert "<span>→ <bdi>sales</bdi></span>" in page
        assert "<span>For:</span><span><bdi>sales</bdi></span>" in page
