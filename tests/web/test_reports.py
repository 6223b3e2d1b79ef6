"""The weekly report as a page: its figures, its ways into the tasks, and who sees whose part."""

from datetime import UTC, datetime

import pytest

from tests.reports import fortnight
from tests.reports.log import at
from tests.web.conftest import Site

NOW = at(14, 1)  # an hour after 2026-W48


@pytest.fixture
def told(site: Site) -> Site:
    db = site.working.board.db
    with db.write() as tx:
        fortnight.write(tx)
    site.working.at((NOW - datetime.now(UTC)).total_seconds())
    return site


def test_the_page_shows_what_the_api_tells(told: Site) -> None:
    page = told.visitor("reviewer").get("/reports/2026-W48").text
    assert "2026-W48: 9 done, 3 failed, oldest review" in page
    for link in ("/tasks?status=failed&amp;sort=-updated_at", "/tasks?type=letters", "/reports/2026-W47"):
        assert f'href="{link}"' in page, link
    assert page.count('<rect class="bar-') == 10  # a part for each day and way in which anything ended
    assert "style=" not in page


def test_titles_are_only_texts(told: Site) -> None:
    with told.working.board.db.write() as tx:
        fortnight.Story(tx, "H", at(9), "replies", title="<script>x</script>").start(at(9)).ask(at(9))
    page = told.visitor("owner").get("/reports/2026-W48").text
    assert "&lt;script&gt;x" in page
    assert "<script>x" not in page


def test_everybody_sees_the_own_part(told: Site) -> None:
    assert "wang@example.org" in told.visitor("owner").get("/reports/2026-W48").text
    assert "wang@example.org" not in told.visitor("viewer").get("/reports/2026-W48").text


def test_the_list(told: Site) -> None:
    visitor = told.visitor("viewer")
    assert "written when the week is over" in visitor.get("/reports").text
    visitor.get("/reports/2026-W47")
    assert 'href="/reports/2026-W47"' in visitor.get("/reports").text


@pytest.mark.parametrize(("week", "code"), [("2025-W53", 422), ("W48", 422), ("2999-W01", 404)])
def test_a_week_that_is_none_is_said(site: Site, week: str, code: int) -> None:
    answer = site.visitor("viewer").get(f"/reports/{week}")
    assert answer.status_code == code
    assert "<h1" in answer.text


def test_the_workbook(told: Site) -> None:
    answer = told.visitor("viewer").get("/reports/2026-W48?format=xlsx")
    assert answer.content.startswith(b"PK")
    assert "report-2026-W48.xlsx" in answer.headers["content-disposition"]


def test_in_chinese(told: Site) -> None:
    page = told.visitor("viewer").get("/reports/2026-W48", headers={"Accept-Language": "zh-CN"}).text
    assert "2026-W48：完成 9，失败 3" in page
