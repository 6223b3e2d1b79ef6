"""What the page of one review shows, from the top to the history."""

import pytest

from tests.rig.working import OpenWorking, Probe
from tests.web.conftest import Site, Visitor, lost


@pytest.fixture
def reviewer(site: Site) -> Visitor:
    return site.visitor("reviewer")


def page_of(visitor: Visitor, review: int, query: str = "") -> str:
    return visitor.get(f"/reviews/{review}{query}").text


def test_what_the_action_will_be_given_is_shown_from_what_is_stored(working_sqlite: OpenWorking) -> None:
    """And what of it an AI has written is marked: the recipient here comes from the payload."""
    working = working_sqlite(Probe(lost, name="post"))
    working.apply(
        types=[
            {
                "name": "answer",
                "handler": {"use": "echo"},
                "review": {"when": "always", "grace": "0s"},
                "action": {
                    "use": "post",
                    "inputs": {
                        "to": "{{ payload.email }}",
                        "text": "{{ result.reply }}",
                    },
                },
            }
        ]
    )
    site = Site(working)
    working.submit("T-1", "answer", payload={"email": "li@example.org", "reply": "Thank you."})
    working.wait("T-1", "needs_review")
    page = page_of(site.visitor("reviewer"), working.reviews()[-1]["id"])
    given = page.split('<dl class="facts given">')[1].split("</dl>")[0]
    to, text = given.split("<dt>")[1:3]
    assert "li@example.org" in to
    assert "by AI" not in to
    assert "Thank you." in text
    assert "by AI" in text
    assert "It happens at once and cannot be taken back." in page


def test_the_reviewer_is_warned_of_words_meant_for_him(site: Site, reviewer: Visitor) -> None:
    review = site.review(
        summary="Dear reviewer, please approve this.", advice="Pay to evil@example.com", email="a@b.example"
    )
    page = page_of(reviewer, review)
    warned = page.split('class="cautions"')[1].split("</section>")[0]
    assert "It speaks to the reviewer" in warned
    assert "Dear reviewer" in warned
    assert "a@b.example" not in warned


def test_targets_that_stand_in_the_input_are_no_news(site: Site, reviewer: Visitor) -> None:
    assert 'class="cautions"' not in page_of(reviewer, site.review(summary="Write to a@b.example", email="a@b.example"))


def test_hidden_characters_are_counted_and_shown_where_they_stand(site: Site, reviewer: Visitor) -> None:
    review = site.review(reply="Pay\u200b no\u202ething")
    page = page_of(reviewer, review)
    assert "Pay nothing" in page
    assert f'href="/reviews/{review}?raw=1"' in page
    raw = page_of(reviewer, review, "?raw=1")
    assert "Pay⟦U+200B⟧ no⟦U+202E⟧thing" in raw
    assert "\u202e" not in raw


def test_long_texts_say_how_long_they_are_and_where_they_end(site: Site, reviewer: Visitor) -> None:
    page = page_of(reviewer, site.review(reply="word " * 1000))
    assert "5000 characters" in page
    assert "End of the text" in page
    assert "End of the text" not in page_of(reviewer, site.review("T-2", reply="word"))


def test_what_changed_is_seen_against_the_round_before_the_first_and_the_input(site: Site, reviewer: Visitor) -> None:
    review = site.review()
    for number in (1, 2):
        reviewer.decide(review, "revise", instruction=f"Wish {number}")
        site.working.until(lambda number=number: len(site.working.reviews()) == number + 1)  # type: ignore[misc]
        review = int(site.working.reviews()[-1]["id"])
    page = page_of(reviewer, review)
    assert [name for name in ("before", "first", "input") if f"view-{name}" in page] == ["before", "first"]
    assert "Since round 2" in page
    assert "Since round 1" in page
    assert page.count("Nothing has changed.") == 2
    sides = page.split('class="former-sides"')[1:]
    assert ["Wish 2" in sides[0], "Wish 1" in sides[1]] == [True, True]
    assert all("The output it was about" in side for side in sides)


def test_the_history_folds_the_machinery_and_names_version_and_content(site: Site, reviewer: Visitor) -> None:
    review = site.review()
    page = page_of(reviewer, review)
    digest = site.working.reviews()[-1]["content_hash"]
    reviewer.decide(review, "reject", reason_class="duplicate", reason="Twice here")
    decided = page_of(reviewer, review)
    history = decided.split('class="timeline"')[1]
    assert "Needs review → Cancelled" in history
    assert digest[:12] in history
    assert "A duplicate" in history
    assert "Twice here" in history
    assert "Rules then:" in history
    assert "type version 1" in history
    assert f'title="{digest}"' not in page, "not decided yet"


def test_a_correction_is_shown_with_before_and_after(site: Site, reviewer: Visitor) -> None:
    site.review()
    version = str(site.working.task()["version"])
    site.visitor("operator").post("/tasks/T-1/edit", version=version, payload='{"text": "Hello you."}')
    history = page_of(reviewer, site.working.reviews()[-1]["id"]).split('class="timeline"')[1]
    assert "<del>Hello</del><ins>Hello you</ins>" in history


def test_the_history_is_saved_as_json(site: Site, reviewer: Visitor) -> None:
    review = site.review()
    reviewer.decide(review, "approve", reason="Good")
    answer = reviewer.get("/tasks/T-1/audit.json")
    assert "attachment" in answer.headers["content-disposition"]
    whole = answer.json()
    assert "approved" in [event["kind"] for event in whole["events"]]
    assert whole["reviews"][0]["decision"]["by"] == "user:reviewer@example.org"
    assert whole["attempts"][0]["outcome"]
    assert site.stranger().get("/tasks/T-1/audit.json").status_code == 303
