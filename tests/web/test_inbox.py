"""The list of the inbox: its order, its groups, and what a row says."""

import re
from datetime import timedelta

from sqlalchemy import update

from board.db.clock import now, read_now
from board.review.models import reviews
from board.web.persons import initials
from board.web.security import STATIC
from board.web.tongue import marked, tongue
from tests.web.conftest import Site


def due(site: Site, review: int, minutes: float, risk: str = "low") -> None:
    with site.working.board.db.write() as tx:
        values = {"due_at": read_now(tx) + timedelta(minutes=minutes), "risk": risk}
        tx.execute(update(reviews).where(reviews.c.id == review).values(**values))


def listed(page: str) -> list[str]:
    """Heads of groups and titles, from the top."""
    found = re.findall(r'<h2 class="group group-(\w+)|<strong class="row-title"[^>]*>([^<]*)', page)
    return [head or title for head, title in found]


def test_what_is_due_comes_first_under_a_head_of_its_own(site: Site) -> None:
    ids = [site.review(f"T-{number}") for number in range(1, 6)]
    due(site, ids[3], -30)
    due(site, ids[4], -60 * 24)
    due(site, ids[2], 60 * 24 * 3, risk="high")
    page = site.visitor("reviewer").get("/").text
    expected = ["overdue", "Title of T-5", "Title of T-4", "rest", "Title of T-3", "Title of T-1", "Title of T-2"]
    assert listed(page) == expected
    assert "In which order?" in page


def test_today_ends_with_the_day_of_the_installation(site: Site) -> None:
    first, second = site.review("T-1"), site.review("T-2")
    with site.working.board.db.write() as tx:
        for review, hour in ((first, 23), (second, 25)):
            midnight = read_now(tx).replace(hour=0, minute=0, second=0, microsecond=0)
            values = {"due_at": midnight + timedelta(hours=hour, minutes=59)}
            tx.execute(update(reviews).where(reviews.c.id == review).values(**values))
    site.working.board.settings.timezone = "UTC"
    assert listed(site.visitor("reviewer").get("/").text) == ["today", "Title of T-1", "rest", "Title of T-2"]


def test_no_heads_where_nothing_is_due(site: Site) -> None:
    site.review("T-1")
    assert listed(site.visitor("reviewer").get("/").text) == ["Title of T-1"]


def test_pages_of_the_list_go_on_where_the_last_one_ended(site: Site) -> None:
    """Reviews with and without a due time, over the edge between two pages."""
    from board.review import read

    ids = [site.review(f"T-{number}") for number in range(1, 6)]
    due(site, ids[4], 5)
    due(site, ids[3], 10)
    found: list[int] = []
    cursor: str | None = None
    with site.working.board.db.read() as connection:
        for _ in range(5):
            page = read.inbox(connection, cursor=cursor, limit=1)
            found += [row["id"] for row in page.rows]
            cursor = page.next_cursor
    assert found == [ids[4], ids[3], ids[0], ids[1], ids[2]]
    assert cursor is None


def test_a_row_shows_for_whom_it_is(site: Site) -> None:
    from board.tasks.models import tasks

    site.review("T-1")
    with site.working.board.db.write() as tx:
        tx.execute(update(tasks).values(assignee="user:li.wei@example.org", updated_at=now()))
    page = site.visitor("reviewer").get("/").text
    assert '<span aria-hidden="true">LW</span>' in page
    assert "for li.wei@example.org" in page


def test_mine_are_those_of_the_tasks_assigned_to_me(site: Site) -> None:
    from board.tasks.models import tasks

    site.review("T-1")
    site.review("T-2")
    site.review("T-3")
    with site.working.board.db.write() as tx:
        for task_id, name in (
            ("T-1", "user:li@example.org"),
            ("T-2", "li@example.org"),
            ("T-3", "user:wang@example.org"),
        ):
            tx.execute(update(tasks).where(tasks.c.task_id == task_id).values(assignee=name))
    page = site.visitor("reviewer", "li").get("/?mine=1").text
    assert listed(page) == ["Title of T-1", "Title of T-2"]
    assert 'data-go="m" aria-current="page"' in page
    assert 'data-narrow="mine=1"' in page, "it is told of what it would show"
    assert len(listed(site.visitor("reviewer", "li").get("/").text)) == 3


def test_initials() -> None:
    assert initials("user:mei@example.org") == "ME"
    assert initials("key:n8n-flow") == "NF"
    assert initials("王小明") == "小明"
    assert initials("user:") == "?"


def test_the_language_of_a_text_is_marked_where_the_page_has_another() -> None:
    assert tongue("护手霜介绍 OEM") == "zh"
    assert tongue("Please ship this to 上海 tomorrow, by the usual carrier and with care") is None
    assert marked("en", "护手霜介绍") == ' lang="zh"'
    assert marked("zh_CN", "A parcel is late") == ' lang="en"'
    assert marked("en", "A parcel is late") == marked("zh_CN", "护手霜介绍") == marked("en", None) == ""
    assert marked("zh_CN", "ありがとう、世界") == ' lang="ja"'


def test_whoever_likes_to_stay_after_a_decision_stays(site: Site) -> None:
    first, second = site.review("T-1"), site.review("T-2")
    reviewer = site.visitor("reviewer")
    page = reviewer.post("/settings/me", after="stay")
    assert page.status_code == 303
    assert re.search(r'value="stay" checked', reviewer.get("/settings/me").text)
    answer = reviewer.decide(first, "approve")
    assert answer.headers["location"] == f"/reviews/{first}"
    reviewer.post("/settings/me", after="list")
    assert reviewer.decide(second, "approve").headers["location"] == f"/?done={second}"
    reviewer.post("/settings/me", after="https://evil.example.org")
    assert re.search(r'value="list" checked', reviewer.get("/settings/me").text)


def test_the_first_sight_of_a_full_list_is_light(site: Site) -> None:
    """Less than 100 kB for the page with its styles and scripts: it is read on phones, under way."""
    for number in range(50):
        site.review(f"T-{number:02}", summary="A summary of two lines, as they come. " * 4, confidence=0.9)
    reviewer = site.visitor("reviewer")
    page = reviewer.get("/")
    assert page.text.count("data-row") == 30
    static = re.search(r'"(/static/\w+)/', page.text)
    assert static is not None
    sizes = [len(page.content)]
    for path in (*sorted(STATIC.glob("*.css")), *sorted(STATIC.glob("*.js"))):
        sent = reviewer.get(f"{static[1]}/{path.name}", headers={"Accept-Encoding": "gzip"})
        assert (sent.headers["content-encoding"], sent.text) == ("gzip", path.read_text(encoding="utf-8"))
        assert "immutable" in sent.headers["cache-control"]
        sizes.append(int(sent.headers["content-length"]))
    assert sum(sizes) < 100_000
