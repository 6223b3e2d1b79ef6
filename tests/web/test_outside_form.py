"""The form with which work waits outside, on the page of its review, without JavaScript."""

from __future__ import annotations

import re

import pytest

from board.ports import Job, Outcome, SentOperation, Success
from tests.review.test_forms import FORM, ask
from tests.rig.working import OpenWorking, Probe
from tests.web.conftest import Site, Visitor


async def follow(job: Job, operation: SentOperation) -> Outcome:
    assert operation.answer is not None
    return Success({"action": operation.answer.action, **operation.answer.inputs})


@pytest.fixture
def site(working_sqlite: OpenWorking) -> Site:
    working = working_sqlite(Probe(ask, follow))
    working.type("trial")
    working.submit()
    working.wait("T-1", "needs_review")
    return Site(working)


def fields(visitor: Visitor, review: int) -> dict[str, str]:
    page = visitor.get(f"/reviews/{review}").text
    return visitor.form(f"/reviews/{review}", "answer") if 'value="answer"' in page else {}


def test_a_person_reads_the_form_and_answers_it(site: Site) -> None:
    review = int(site.working.reviews()[0]["id"])
    person = site.visitor("reviewer")
    page = person.get(f"/reviews/{review}").text
    assert "The workflow asks a person." in page
    assert "<strong>Look</strong> at it." in page
    assert re.findall(r'name="action" value="(\w+)"', page) == ["yes", "no"]
    assert re.search(r'<select name="field:size".*?<option selected>M</option>', page, re.S)
    given = fields(person, review) | {"field:remark": "Fine.", "field:size": "S", "action": "no"}
    assert person.post(f"/reviews/{review}/decision", **given).status_code == 303
    site.working.wait("T-1", "done")
    assert site.working.data()["result"] == {"action": "no", "remark": "Fine.", "size": "S"}
    assert "Answered" in person.get("/decided").text


def test_what_does_not_fit_is_said_and_what_was_typed_stays(site: Site) -> None:
    review = int(site.working.reviews()[0]["id"])
    person = site.visitor("reviewer")
    given = fields(person, review) | {"field:remark": "My words", "field:size": "", "action": "yes"}
    answer = person.post(f"/reviews/{review}/decision", **given)
    assert answer.status_code == 422
    assert "The answer does not fit the form" in answer.text
    assert "My words" in answer.text
    assert site.working.task()["status"] == "needs_review"


def test_who_may_only_read_sees_the_form_and_no_buttons(site: Site) -> None:
    review = int(site.working.reviews()[0]["id"])
    page = site.visitor("viewer").get(f"/reviews/{review}").text
    assert FORM["title"] in page
    assert 'name="action"' not in page


def test_in_chinese(site: Site) -> None:
    review = int(site.working.reviews()[0]["id"])
    page = site.visitor("reviewer", lang="zh-CN").get(f"/reviews/{review}").text
    assert "工作流正在等待" in page
