"""Work on tables: the report, and the way from one format to the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from board.sheets.read import read_table
from integrations.files.bad_file import BadFile
from integrations.files.options import values
from integrations.files.tables.make import MAKERS
from integrations.files.tables.options import OPTIONS

CASES = Path(__file__).parents[2] / "data/cases/tables"


def make(name: str, source: Path, folder: Path, **options: Any) -> dict[str, Any]:
    return MAKERS[name](str(source), str(folder), 1, values(OPTIONS[name], options))


def test_the_report_of_a_csv_file(tmp_path: Path) -> None:
    """B059."""
    made = make("table.check", CASES / "d_gb18030.csv", tmp_path)
    assert (made["encoding"], made["delimiter"], made["rows"], made["columns"]) == ("gb18030", ",", 3, 4)
    assert made["header"] == ["编号", "标题", "金额", "备注"]
    kept = json.loads(Path(made["path"]).read_text(encoding="utf-8"))
    assert kept == {name: made[name] for name in kept}


def test_the_report_of_a_workbook_names_everything_a_person_should_look_at(tmp_path: Path) -> None:
    """B065."""
    made = make("table.check", CASES / "d_mess.xlsx", tmp_path)
    assert (made["sheet"], made["rows"], made["blank_rows"], made["formulas"]) == ("任务", 7, 19_992, 1)
    assert (made["doubled"], made["merged"]) == (["ID"], ["A7:A8", "B6:D6"])
    assert len(made["problems"]) == 4


def test_a_report_is_short_in_the_result_and_whole_in_the_file(tmp_path: Path) -> None:
    source = tmp_path / "wide.csv"
    source.write_text(",".join(["x"] * 300) + "\n", encoding="utf-8")
    made = make("table.check", source, tmp_path)
    kept = json.loads(Path(made["path"]).read_text(encoding="utf-8"))
    assert (len(made["header"]), len(made["problems"]), made["columns"]) == (100, 50, 300)
    assert (len(kept["header"]), len(kept["problems"])) == (300, 299)


@pytest.mark.parametrize("file", ["d_mess.xlsx", "d_gb18030.csv", "d_bom_semicolon.csv", "d_dup_header_multiline.csv"])
def test_there_and_back_changes_no_value(file: str, tmp_path: Path) -> None:
    """B061."""
    first = read_table(CASES / file)
    there = make("table.convert", CASES / file, tmp_path)
    assert there["ending"] == (".csv" if file.endswith(".xlsx") else ".xlsx")
    once = Path(there["path"]).rename(tmp_path / "once")
    back = make("table.convert", once, tmp_path)
    again = read_table(Path(back["path"]))
    assert (again.header, again.rows) == (first.header, first.rows)


def test_how_a_csv_file_is_written_may_be_asked_for(tmp_path: Path) -> None:
    made = make(
        "table.convert",
        CASES / "d_bom_semicolon.csv",
        tmp_path,
        format="csv",
        to_encoding="gb18030",
        to_delimiter="tab",
    )
    assert Path(made["path"]).read_bytes().decode("gb18030").startswith("id\ttitle\tamount\tnote\r\n0071\t")


def test_what_is_lost_is_told(tmp_path: Path) -> None:
    """B067."""
    source = tmp_path / "t.csv"
    source.write_text(f"a,b\nx\x0by,{'z' * 40_000}\n", encoding="utf-8")
    made = make("table.convert", source, tmp_path)
    assert [it.split(":")[0] for it in made["notes"]] == [
        "control characters left out",
        "cells cut at 32767 characters, which is all that XLSX holds",
    ]


@pytest.mark.parametrize("name", MAKERS)
def test_a_bad_table_is_a_bad_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(BadFile, match="empty"):
        make(name, tmp_path / "empty.csv", tmp_path)
    assert [it.name for it in tmp_path.iterdir()] == ["empty.csv"]
