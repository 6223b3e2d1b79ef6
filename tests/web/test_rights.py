"""Pages offer what a role may do, and refuse the rest even when a form is sent all the same."""

import pytest

from tests.web.conftest import Site

READ = ["/", "/decided", "/tasks", "/tasks/T-1", "/settings/types", "/settings/connections", "/pulse", "/reviews/{}"]


@pytest.mark.parametrize("role", ["viewer", "reviewer", "operator", "owner"])
def test_everybody_signed_in_may_read(site: Site, role: str) -> None:
    review = site.review()
    visitor = site.visitor(role)
    assert {path: visitor.get(path.format(review)).status_code for path in READ} == dict.fromkeys(READ, 200)


def test_strangers_may_read_nothing(site: Site) -> None:
    review = site.review()
    for path in READ:
        answer = site.stranger().get(path.format(review))
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/login")
        assert "Title of" not in answer.text


def test_a_viewer_sees_who_may_decide_and_cannot(site: Site) -> None:
    review = site.review()
    fields = site.visitor("reviewer").form(f"/reviews/{review}", "approve")
    viewer = site.visitor("viewer")
    page = viewer.get(f"/reviews/{review}").text
    assert "reviewers, operators and owners may" in page
    assert "/decision" not in page
    answer = viewer.post(f"/reviews/{review}/decision", **(fields | {"csrf": viewer.csrf}))
    assert answer.status_code == 403
    assert "reviewers, operators and owners may" in answer.text
    assert viewer.post(f"/reviews/{review}/undo").status_code == 403
    assert site.working.task()["status"] == "needs_review"


@pytest.mark.parametrize("role", ["viewer", "reviewer"])
def test_only_operators_and_owners_change_tasks(site: Site, role: str) -> None:
    site.review()
    visitor = site.visitor(role)
    for page in (visitor.get("/tasks").text, visitor.get("/tasks/T-1").text):
        assert "/cancel" not in page
        assert "/tasks/act" not in page or 'name="do"' not in page
        assert "/edit" not in page
    assert visitor.get("/tasks/T-1/edit").status_code == 403
    for path, fields in (
        ("/tasks/T-1/cancel", {}),
        ("/tasks/T-1/requeue", {}),
        ("/tasks/T-1/run-now", {}),
        ("/tasks/T-1/edit", {"version": "3", "payload": "{}"}),
    ):
        answer = visitor.post(path, **fields)
        assert answer.status_code == 403, path
        assert "Your role does not allow this" in answer.text
    visitor.post("/tasks/act", do="cancel:T-1", next="/tasks")
    assert site.working.task()["status"] == "needs_review"


def test_a_role_that_was_taken_away_counts_at_the_next_click(site: Site) -> None:
    from board.access import users

    review = site.review()
    visitor = site.visitor("reviewer")
    fields = visitor.form(f"/reviews/{review}", "approve")
    with site.working.board.db.write() as tx:
        person = users.find_by_email(tx, visitor.email)
        assert person
        users.set_role(tx, person.id, "viewer")
    assert visitor.post(f"/reviews/{review}/decision", **fields).status_code == 403


def test_whoever_the_type_does_not_name_sees_who_may(site: Site) -> None:
    site.working.type("judge", "echo", review={"when": "always", "reviewers": ["sales", "li@example.org"]})
    review = site.review()
    visitor = site.visitor("owner")
    page = visitor.get(f"/reviews/{review}").text
    assert "Who may: sales, li@example.org" in page
    assert "/decision" not in page
    fields = site.visitor("reviewer", "li").form(f"/reviews/{review}", "approve")
    answer = visitor.post(f"/reviews/{review}/decision", **(fields | {"csrf": visitor.csrf}))
    assert answer.status_code == 403
    assert "Who may: sales, li@example.org" in answer.text
    assert "可以决定的是：sales" in site.visitor("reviewer", lang="zh-CN").get(f"/reviews/{review}").text


def test_one_of_two_approvals_is_shown_and_taken_back(site: Site) -> None:
    site.working.type("judge", "echo", review={"when": "always", "approvals": 2})
    review = site.review()
    anna, ben = site.visitor("reviewer", "anna"), site.visitor("reviewer", "ben")
    assert "0 of 2 approvals" in anna.get(f"/reviews/{review}").text
    anna.decide(review, "approve")
    page = anna.get(f"/reviews/{review}").text
    assert "It takes another person as well." in page
    assert "/decision" not in page
    assert "1 of 2 approvals" in ben.get(f"/reviews/{review}").text
    assert anna.post(f"/reviews/{review}/undo").status_code == 303
    assert "0 of 2 approvals" in ben.get(f"/reviews/{review}").text
    anna.decide(review, "approve")
    ben.decide(review, "approve")
    assert site.working.reviews()[-1]["verdict"] == "approve"
