"""Deciding from a page, with nothing but forms."""

import re

import pytest

from tests.web.conftest import Site, Visitor


@pytest.fixture
def reviewer(site: Site) -> Visitor:
    return site.visitor("reviewer", "li")


def test_approving_leads_to_the_next_review_and_can_be_undone(site: Site, reviewer: Visitor) -> None:
    first, second, third = site.review("T-1"), site.review("T-2"), site.review("T-3")
    answer = reviewer.decide(second, "approve")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/reviews/{third}?done={second}")
    page = reviewer.get(answer.headers["location"]).text
    assert "Approved: <bdi>Title of T-2</bdi>" in page
    assert f'action="/reviews/{second}/undo"' in page
    assert site.working.reviews("T-2")[-1]["channel"] == "web"
    assert site.working.reviews("T-2")[-1]["decider"] == "user:li@example.org"
    answer = reviewer.post(f"/reviews/{second}/undo")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/reviews/{second}")
    assert "undone" in reviewer.get(f"/reviews/{second}").text
    assert site.working.task("T-2")["status"] == "needs_review"
    assert reviewer.decide(third, "approve").headers["location"] == f"/reviews/{first}?done={third}"


def test_the_last_decision_leads_to_an_empty_inbox(site: Site, reviewer: Visitor) -> None:
    review = site.review()
    answer = reviewer.decide(review, "reject", reason_class="wrong", reason="Not ours")
    assert answer.headers["location"] == f"/?done={review}"
    page = reviewer.get(answer.headers["location"]).text
    assert "Nothing waits" in page
    assert "Last decision:" in page
    assert site.working.task()["status"] == "cancelled"
    row = site.working.reviews()[-1]
    assert (row["reason_class"], row["decision_reason"]) == ("wrong", "Not ours")


def test_revise_sends_the_instruction_and_the_next_round_shows_both(site: Site, reviewer: Visitor) -> None:
    review = site.review()
    assert reviewer.decide(review, "revise", instruction="Be *kind*").status_code == 303
    site.working.wait("T-1", "needs_review")
    site.working.until(lambda: len(site.working.reviews()) == 2)
    page = reviewer.get(f"/reviews/{site.working.reviews()[-1]['id']}").text
    assert "Round 2 of 5" in page
    assert "Be *kind*" in page


@pytest.mark.parametrize(
    ("verdict", "typed", "words"),
    [
        ("revise", {}, "Say what should be done differently."),
        ("revise", {"instruction": "  "}, "Say what should be done differently."),
        ("reject", {"reason": "My words"}, "Say why"),
        ("happened", {"reason": "My words"}, "not offered"),
        ("bogus", {}, "not offered"),
    ],
)
def test_what_is_missing_or_not_offered_is_said_and_the_draft_stays(
    site: Site, reviewer: Visitor, verdict: str, typed: dict[str, str], words: str
) -> None:
    review = site.review()
    fields = reviewer.form(f"/reviews/{review}", "approve") | {"verdict": verdict} | typed
    answer = reviewer.post(f"/reviews/{review}/decision", **fields)
    assert answer.status_code == 422
    assert words in answer.text
    assert typed.get("reason", "") in answer.text
    assert site.working.task()["status"] == "needs_review"


def test_the_same_decision_twice_counts_once_and_is_no_error(site: Site, reviewer: Visitor) -> None:
    """B069: a double click, or the browser's back button and the same click again."""
    review = site.review()
    fields = reviewer.form(f"/reviews/{review}", "approve")
    answers = [reviewer.post(f"/reviews/{review}/decision", **fields) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [303, 303, 303]
    assert site.working.kinds().count("approved") == 1


def test_a_colleague_was_faster(site: Site, reviewer: Visitor) -> None:
    review = site.review()
    fields = reviewer.form(f"/reviews/{review}", "revise") | {"instruction": "My careful thoughts"}
    assert site.visitor("operator", "wang").decide(review, "approve").status_code == 303
    answer = reviewer.post(f"/reviews/{review}/decision", **fields)
    assert answer.status_code == 409
    assert "wang@example.org approved this." in answer.text
    assert re.search(r"\d+ seconds? ago|just now", answer.text)
    assert "My careful thoughts" in answer.text
    assert site.working.kinds().count("revised") == 0


def test_the_content_changed_while_it_was_looked_at(site: Site, reviewer: Visitor) -> None:
    """B073: a decision about what is no longer there has no effect."""
    review = site.review()
    fields = reviewer.form(f"/reviews/{review}", "revise") | {"instruction": "Keep this draft"}
    operator = site.visitor("operator")
    version = str(site.working.task()["version"])
    assert operator.post("/tasks/T-1/edit", version=version, payload='{"text": "New"}').status_code == 303
    answer = reviewer.post(f"/reviews/{review}/decision", **fields)
    assert answer.status_code == 409
    assert "has changed meanwhile" in answer.text
    assert '<textarea id="instruction"' in answer.text
    assert "Keep this draft</textarea>" in answer.text
    assert site.working.task()["status"] == "needs_review"


def test_a_form_that_names_no_content_decides_nothing(site: Site, reviewer: Visitor) -> None:
    review = site.review()
    for left_out in ("version", "content_hash"):
        fields = reviewer.form(f"/reviews/{review}", "approve")
        answer = reviewer.post(f"/reviews/{review}/decision", **(fields | {left_out: ""}))
        assert answer.status_code == 409
    assert site.working.task()["status"] == "needs_review"


def test_a_cancelled_task_shows_its_record(site: Site, reviewer: Visitor) -> None:
    review = site.review()
    fields = reviewer.form(f"/reviews/{review}", "approve")
    site.working.cancel("T-1")
    answer = reviewer.post(f"/reviews/{review}/decision", **fields)
    assert answer.status_code == 409
    assert "Closed without a decision" in answer.text
    page = reviewer.get(f"/reviews/{review}")
    assert page.status_code == 200
    assert "Cancelled" in page.text
    assert "/decision" not in page.text


def test_undo_is_for_the_one_who_decided_and_only_in_time(site: Site, reviewer: Visitor) -> None:
    review = site.review()
    reviewer.decide(review, "approve")
    other = site.visitor("operator")
    assert "/undo" not in other.get(f"/reviews/{review}?done={review}").text
    assert other.post(f"/reviews/{review}/undo").status_code == 409
    assert "/undo" in reviewer.get(f"/reviews/{review}").text
    site.working.at(60)
    assert "/undo" not in reviewer.get(f"/reviews/{review}").text
    answer = reviewer.post(f"/reviews/{review}/undo")
    assert answer.status_code == 409
    assert "can no longer be undone" in answer.text


@pytest.mark.parametrize(
    ("verdict", "typed", "status", "operation"),
    [
        ("happened", {"reason": "I saw it", "reference": "PAY-77"}, ["done"], "confirmed"),
        ("drop", {"reason": "Not needed"}, ["cancelled"], "rejected"),
        ("not_happened", {"reason": "Not there"}, ["needs_review"], "unknown"),
    ],
)
def test_an_unknown_outcome_has_its_three_answers(
    site: Site, reviewer: Visitor, verdict: str, typed: dict[str, str], status: list[str], operation: str
) -> None:
    site.working.submit("T-1", "pay")
    site.working.wait("T-1", "needs_review")
    review = site.working.reviews()[-1]["id"]
    page = reviewer.get(f"/reviews/{review}").text
    assert "nobody can tell whether it happened" in page
    assert "https://bank.example.org/pay" in page.split("What is in question", 1)[1].split("</section>")[0]
    assert "If you approve" not in page
    assert not {"approve", "revise", "reject"} & set(re.findall(r'name="verdict" value="(\w+)"', page))
    assert reviewer.decide(review, verdict, reason=" ").status_code == 422
    assert reviewer.decide(review, verdict, **typed).status_code == 303
    site.working.until(
        lambda: (
            site.working.task()["status"] in status
            and (len(site.working.reviews()) == 2) == (verdict == "not_happened")
        )
    )
    assert site.working.operations()[-1]["status"] == operation
    if verdict == "happened":
        assert site.working.operations()[-1]["external_reference"] == "PAY-77"
    assert site.working.events()[-1]["note"] == typed["reason"] or verdict == "not_happened"


def test_a_high_risk_is_confirmed_in_a_second_step_that_names_what_follows(site: Site, reviewer: Visitor) -> None:
    url = "https://n8n.example.org/webhook/pay?token=secret"
    site.working.apply(connections=[{"name": "payments", "kind": "webhook", "url": url}])
    action = {"use": "webhook", "connection": "payments"}
    site.working.type("transfer", "none", action=action, review={"risk": "high"})
    site.working.submit("P-1", "transfer", payload={"amount": 5}, callback_url="https://8.8.8.8/done?key=secret")
    site.working.wait("P-1", "needs_review")
    review = site.working.reviews("P-1")[-1]["id"]
    page = reviewer.get(f"/reviews/{review}").text
    step = page.split("look once more", 1)[1].split("</form>")[0]
    assert "payments" in step
    assert "https://n8n.example.org/webhook/pay?…" in step
    assert "https://8.8.8.8/done?…" in step
    assert "secret" not in page
    assert page.count('value="approve"') == 1
    assert reviewer.decide(review, "approve").status_code == 303


def test_a_direct_review_offers_no_revision_and_no_word_of_an_ai(site: Site, reviewer: Visitor) -> None:
    site.working.submit("D-1", "direct", payload={"amount": 12345678901234567890})
    site.working.wait("D-1", "needs_review")
    page = reviewer.get(f"/reviews/{site.working.reviews('D-1')[-1]['id']}").text
    assert "12345678901234567890" in page
    assert "Written by AI" not in page
    assert set(re.findall(r'name="verdict" value="(\w+)"', page)) == {"approve", "reject"}


def test_hidden_characters_are_counted_once(site: Site, reviewer: Visitor) -> None:
    review = site.review(summary="pay\u202e \u200bnow")
    page = reviewer.get(f"/reviews/{review}").text
    assert "2 hidden characters were removed" in page.split("Written by AI", 1)[1]
    assert "\u202e" not in page
    assert "U+202E" in page
