"""A week that is over is written once and stays as it was; a running one is worked out anew."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import pytest
from python_calamine import CalamineWorkbook
from sqlalchemy import func, select

from board.access.rights import person_actor
from board.db.engine import Database
from board.effects.models import announcements
from board.reports.models import reports
from board.reports.sheet import workbook
from board.reports.weekly import NoSuchReport, Reports, for_eyes_of
from board.reports.weeks import Week
from tests.reports import fortnight
from tests.reports.conftest import SetClock
from tests.reports.log import Story, at

W47, W48, W49 = (Week(2026, number) for number in (47, 48, 49))
AFTER = at(14, 1)  # Monday 01:00, an hour after W48


@pytest.fixture
def weekly(db: Database, clock: SetClock) -> Reports:
    with db.write() as tx:
        fortnight.write(tx)
    clock(AFTER)
    return Reports(db, "UTC")


def kept(db: Database) -> list[str]:
    with db.read() as connection:
        return list(connection.execute(select(reports.c.week).order_by(reports.c.week)).scalars())


def test_what_happens_later_changes_nothing(weekly: Reports, db: Database, clock: SetClock) -> None:
    first = weekly.of(W48)
    assert (first["frozen"], first["week"], first["from"], first["to"]) == (
        *(True, "2026-W48"),
        *("2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"),
    )
    assert first["change"]["headline"]["done"]["difference"] == 2
    with db.write() as tx:  # which should not be: a move of last week that is written now
        Story(tx, "late", at(8)).start(at(8)).end("done", "done", at(8, 1))
    clock(AFTER + timedelta(days=1))
    assert weekly.of(W48) == first


def test_the_running_week_is_not_kept(weekly: Reports, db: Database) -> None:
    running = weekly.of(W49)
    assert (running["frozen"], running["headline"]["done"]) == (False, 1)  # C2
    assert running["as_of"] == "2026-11-30T01:00:00Z"
    assert kept(db) == []


def test_the_leader_writes_the_last_week_once(weekly: Reports, db: Database) -> None:
    assert weekly.keep_last() == W48
    assert weekly.keep_last() is None
    assert kept(db) == ["2026-W48"]


def test_subscriptions_hear_of_the_last_week_once(weekly: Reports, db: Database) -> None:
    weekly.of(W47)  # an older one that nobody has asked for yet is no news
    weekly.of(W48)
    assert weekly.keep_last() is None
    with db.read() as connection:
        [told] = connection.execute(select(announcements)).mappings()
    assert (told["event"], told["name"]) == ("report.ready", "2026-W48")
    body = json.loads(told["body"])
    assert (body["event"], body["task"], body["data"]["week"]) == ("report.ready", None, "2026-W48")
    assert body["data"]["headline"] == weekly.of(W48)["headline"]


def test_of_several_writers_the_first_counts(weekly: Reports, db: Database) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(weekly.keep, [W48] * 4))
    assert all(it == found[0] for it in found)
    with db.read() as connection:
        assert connection.execute(select(func.count()).select_from(reports)).scalar_one() == 1


def test_weeks_without_a_report(weekly: Reports, db: Database) -> None:
    with pytest.raises(NoSuchReport, match="2026-W50 has not begun yet"):
        weekly.of(Week(2026, 50))
    with pytest.raises(NoSuchReport, match="Nothing had happened here by the end of 2026-W46"):
        weekly.of(Week(2026, 46))
    assert kept(db) == []


def test_before_anything_happened_nothing_is_written(db: Database, clock: SetClock) -> None:
    clock(AFTER)
    empty = Reports(db, "UTC")
    assert empty.keep_last() is None
    assert empty.of(W49)["headline"]["done"] == 0


def test_the_list_has_the_newest_first(weekly: Reports) -> None:
    for week in (W47, W48):
        weekly.of(week)
    page = weekly.listed(limit=1)
    assert [it["week"] for it in page.rows] == ["2026-W48"]
    assert page.rows[0]["headline"]["failed"] == 3
    rest = weekly.listed(page.next_cursor)
    assert ([it["week"] for it in rest.rows], rest.next_cursor) == (["2026-W47"], None)


def test_everybody_sees_only_the_own_part(weekly: Reports) -> None:
    document = weekly.of(W48)

    def seen(email: str, role: str) -> list[str]:
        return [it["who"] for it in for_eyes_of(document, person_actor(email, role))["people"]]

    assert seen("boss@example.org", "owner") == ["user:li@example.org", "user:wang@example.org"]
    assert seen("wang@example.org", "reviewer") == ["user:wang@example.org"]
    assert seen("new@example.org", "operator") == []


def test_titles_may_be_kept_out(weekly: Reports, db: Database) -> None:
    assert "Mr. Berg" in str(weekly.of(W48))
    silent = Reports(db, "UTC", titles=False)
    with db.write() as tx:
        tx.execute(reports.delete())
    assert "Mr. Berg" not in str(silent.of(W48))


def sheets(document: dict[str, Any]) -> dict[str, list[tuple[Any, ...]]]:
    book = CalamineWorkbook.from_filelike(BytesIO(workbook(document)))
    return {name: [tuple(row) for row in book.get_sheet_by_name(name).to_python()] for name in book.sheet_names}


def test_the_workbook_holds_numbers(weekly: Reports) -> None:
    found = sheets(weekly.of(W48))
    assert ("done", 9, 7, 2) in found["Summary"]
    assert [row[:2] for row in found["Days"][1:3]] == [("Mon", 6), ("Tue", 3)]
    assert [row[0] for row in found["Types"]] == ["type", "letters", "pays", "replies"]
    assert found["Types"][0][-1] == "USD"
    assert found["Types"][1][-1] == 0.12


def test_nothing_in_the_workbook_is_computed(weekly: Reports, db: Database) -> None:
    with db.write() as tx:
        Story(tx, "X", at(8), "=HYPERLINK(1)").start(at(8)).end("done", "done", at(8))
    document = weekly.of(W48)
    assert "=HYPERLINK(1)" in [row[0] for row in sheets(document)["Types"]]
    with ZipFile(BytesIO(workbook(document))) as parts:
        assert not [name for name in parts.namelist() if "sheet" in name and b"<f>" in parts.read(name)]
