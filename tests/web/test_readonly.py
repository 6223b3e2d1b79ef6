"""Looking changes nothing: a mail scanner, a prefetch or a reload may open whatever it finds (B071)."""

import sqlite3
from contextlib import closing

from board.access import links, users
from tests.web.conftest import Site


def dump(site: Site) -> list[str]:
    path = site.working.board.db.url.database
    assert path
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_get_and_head_of_every_page_leave_the_database_as_it_is(site: Site) -> None:
    open_review = site.review("T-1", summary="<b>x</b>")
    decided = site.review("T-2")
    visitor = site.visitor("owner")
    visitor.decide(decided, "approve")
    with site.working.board.db.write() as tx:
        first_owner = links.owner_link(tx)
        own = links.user_link(tx, users.add(tx, "new@example.org", "viewer").id)
    site.working.wait("T-2", "done", "pending")
    site.working.stop()
    assert first_owner
    paths = [
        *("/", "/decided", "/tasks", "/tasks?status=failed&q=x&sort=title", "/pulse", "/login", "/docs"),
        *(
            "/settings/types",
            "/settings/connections",
            "/settings/subscriptions",
            f"/setup/{first_owner}",
            f"/setup/{own}",
            "/setup/nothing",
        ),
        *(f"/reviews/{open_review}", f"/reviews/{decided}", f"/?done={decided}", "/reviews/99999"),
        *(f"/reviews/{open_review}/decision", f"/reviews/{decided}/undo", "/logout", "/language"),
        *("/tasks/T-1", "/tasks/T-1/edit", "/tasks/T-1/data.json", "/tasks/T-1/cancel", "/tasks/nothing"),
    ]
    before = dump(site)
    answers = {}
    for path in paths:
        for who in (visitor, site.stranger()):
            answers[path] = who.get(path).status_code if who is visitor else answers[path]
            assert who.client.head(path).status_code == who.get(path).status_code, path
    assert dump(site) == before
    shown = [path for path, code in answers.items() if code == 200]
    assert len(shown) >= 15, answers
    assert 500 not in answers.values()
    assert site.stranger().post(f"/setup/{own}", password="correct horse battery").status_code == 303, "not used up"


def test_a_first_look_at_a_reviews_link_uses_nothing_up(site: Site) -> None:
    """A scanner opens it, then the person decides."""
    review = site.review()
    site.stranger().get(f"/reviews/{review}")
    visitor = site.visitor("reviewer")
    visitor.client.head(f"/reviews/{review}")
    assert visitor.decide(review, "approve").status_code == 303
    assert site.working.reviews()[-1]["verdict"] == "approve"
