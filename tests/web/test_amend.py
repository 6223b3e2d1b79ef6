"""Editing the output and approving it, from a page."""

import re

import pytest

from tests.web.conftest import Site, Visitor


@pytest.fixture
def review(site: Site) -> int:
    site.working.type("judge", "echo", review={"when": "always", "editable": ["reply", "amount"]})
    return site.review(reply="Dear Li, thank you.", amount=12, label="a")


@pytest.fixture
def reviewer(site: Site) -> Visitor:
    return site.visitor("reviewer", "li")


def hidden(page: str) -> dict[str, str]:
    form = page.split('class="sheet stack"')[1].split("</form>", maxsplit=1)[0]
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', form))


def test_the_change_is_shown_before_it_is_approved(site: Site, review: int, reviewer: Visitor) -> None:
    page = reviewer.get(f"/reviews/{review}").text
    assert f'href="/reviews/{review}/edit"' in page
    page = reviewer.get(f"/reviews/{review}/edit").text
    assert 'name="value:reply"' in page
    assert 'name="value:label"' not in page
    typed = {"value:reply": "Dear Ms Li, thank you.", "value:amount": "12"}
    preview = reviewer.post(f"/reviews/{review}/edit", **(hidden(page) | typed), do="preview").text
    assert "<ins>Ms </ins>" in preview
    assert "amount" not in preview.split('<dl class="tree">')[1].split("</dl>")[0], "only what changes is shown"
    assert site.working.task()["status"] == "needs_review"
    answer = reviewer.post(f"/reviews/{review}/edit", **hidden(preview), do="approve")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/?done={review}")
    assert site.working.data()["result"]["reply"] == "Dear Ms Li, thank you."
    assert site.working.data()["result"]["label"] == "a"
    record = reviewer.get(f"/reviews/{review}").text
    assert "Changed with the approval:" in record
    assert "<ins>Ms </ins>" in record.split('class="timeline"')[1]


def test_going_back_keeps_what_was_typed(review: int, reviewer: Visitor) -> None:
    page = reviewer.get(f"/reviews/{review}/edit").text
    again = reviewer.post(f"/reviews/{review}/edit", **(hidden(page) | {"value:reply": "My text"}), do="back")
    assert again.status_code == 200
    assert "My text" in again.text


def test_what_changed_meanwhile_is_not_approved_and_the_text_stays(site: Site, review: int, reviewer: Visitor) -> None:
    """B073."""
    page = reviewer.get(f"/reviews/{review}/edit").text
    version = str(site.working.task()["version"])
    site.visitor("operator").post("/tasks/T-1/edit", version=version, payload='{"text": "New"}')
    answer = reviewer.post(f"/reviews/{review}/edit", **(hidden(page) | {"value:reply": "My text"}), do="approve")
    assert answer.status_code == 409
    assert "has changed meanwhile" in answer.text
    assert "My text" in answer.text
    assert site.working.task()["status"] == "needs_review"


def test_a_field_that_cannot_be_read_says_so(site: Site, review: int, reviewer: Visitor) -> None:
    page = reviewer.get(f"/reviews/{review}/edit").text
    answer = reviewer.post(f"/reviews/{review}/edit", **(hidden(page) | {"value:amount": "many"}), do="approve")
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.text
    assert site.working.task()["status"] == "needs_review"


def test_only_where_the_type_and_the_role_allow_it(site: Site, review: int) -> None:
    assert site.visitor("viewer").get(f"/reviews/{review}/edit").status_code == 403
    site.working.type("judge", "echo", review={"when": "always"})
    other = site.review("T-2")
    assert site.visitor("reviewer").get(f"/reviews/{other}/edit").status_code == 404
    assert f"/reviews/{other}/edit" not in site.visitor("reviewer").get(f"/reviews/{other}").text
