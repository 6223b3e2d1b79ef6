"""GET /reports: the week by its name, its list, its workbook, and words for a week that is none."""

from collections.abc import Callable
from io import BytesIO

from python_calamine import CalamineWorkbook

from tests.api.conftest import Api

WEEK = 7 * 86_400.0


def test_the_running_week_then_the_same_one_kept(api: Api, at: Callable[[float], None]) -> None:
    api.post("/tasks", json={"type": "trial", "task_id": "T-1"})
    with api.board.db.read() as connection:
        week = str(api.board.reports.running_week(connection))
    running = api.get(f"/reports/{week}").json()
    assert (running["week"], running["zone"], running["frozen"], running["created"]) == (week, "UTC", False, 1)
    assert set(running["headline"]) == {
        *("done", "failed", "cancelled", "timed_out", "review_wait_p50", "override_rate"),
    }
    assert api.get("/reports").json()["data"] == []
    at(WEEK)
    kept = api.get(f"/reports/{week}").json()
    assert (kept["frozen"], kept["created"], kept["open_states"]["pending"]["n"]) == (True, 1, 1)
    assert api.get("/reports").json()["data"][0]["week"] == week


def test_the_workbook(api: Api) -> None:
    with api.board.db.read() as connection:
        week = str(api.board.reports.running_week(connection))
    answer = api.client.get(f"/reports/{week}?format=xlsx")
    assert answer.headers["content-disposition"] == f'attachment; filename="report-{week}.xlsx"'
    assert CalamineWorkbook.from_filelike(BytesIO(answer.content)).sheet_names[0] == "Summary"


def test_a_week_that_is_none(api: Api) -> None:
    wrong = api.get("/reports/2025-W53")
    assert (wrong.status_code, wrong.json()["code"]) == (422, "bad_week")
    assert wrong.json()["message"] == "2025 has no week 53; its weeks are W01 to W52."
    later = api.get("/reports/2999-W01")
    assert (later.status_code, later.json()["code"]) == (404, "report_not_found")


def test_who_may_read(api: Api) -> None:
    assert api.get("/reports").status_code == 200
    submitter = api.as_key("submit")
    assert submitter.get("/reports").status_code == 403
    assert submitter.get("/reports/2026-W48").status_code == 403
