"""Tables read and written: what the field has taught (B059 to B067), on the very files and on others of the kinds."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xlsxwriter import Workbook

from board.sheets import read_csv as reading_csv
from board.sheets import scan_xlsx, table
from board.sheets.harmless import marked, unmarked
from board.sheets.read import read_table
from board.sheets.table import BadTable
from board.sheets.write import CUT, MAX_CELL, sheet_name, write_csv, write_xlsx

CASES = Path(__file__).parents[1] / "data/cases"
FACTS: dict[str, dict[str, Any]] = json.loads((CASES / "tables.json").read_text(encoding="utf-8"))
ACTIVE = ["=1+1", "+SUM(1)", "-2+3", "@x", "\tx", "\rx", "=cmd|'/c calc'!A1", "'=1", "''+1", "＝1+1", "-5x", "+86139"]


def csv_file(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def workbook(path: Path, rows: Sequence[Sequence[Any]], at: tuple[int, int] = (0, 0), **options: Any) -> Path:
    book = Workbook(str(path), options)
    date_format = book.add_format({"num_format": "yyyy-mm-dd"})
    sheet = book.add_worksheet("one")
    for row, cells in enumerate(rows, at[0]):
        for column, cell in enumerate(cells, at[1]):
            if isinstance(cell, date):
                sheet.write_datetime(row, column, cell, date_format)
            else:
                sheet.write(row, column, cell)
    book.close()
    return path


# -- CSV is decoded as it was meant ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tables/d_gb18030.csv", "tables/d_bom_semicolon.csv"])
def test_the_cases_are_read_as_they_were_meant(name: str) -> None:
    """B059."""
    facts = FACTS[name]
    read = read_table(CASES / name)
    assert (read.header, read.rows) == (facts["header"], facts["cells"])
    assert read.delimiter == facts["delimiter"]
    assert read.encoding == {"gb18030": "gb18030", "utf-8 with BOM": "utf-8-sig"}[facts["encoding"]]
    assert read.problems == []


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encoding_and_delimiter_are_found_and_told(delimiter: str, encoding: str, end: str, tmp_path: Path) -> None:
    rows = [["编号", "a,b;c|d", "x"], ["001", 'he "said"', ""], ["002", "two\nlines", "y"]]
    with (tmp_path / "t.csv").open("w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(rows)
    read = read_table(tmp_path / "t.csv")
    assert [read.header, *read.rows] == rows
    assert (read.encoding, read.delimiter) == (encoding, delimiter)


def test_another_encoding_and_delimiter_may_be_asked_for(tmp_path: Path) -> None:
    source = csv_file(tmp_path / "t.csv", "a|b,c\ncafé|1,2\n".encode("windows-1252"))
    with pytest.raises(BadTable, match="option encoding"):
        read_table(source)
    read = read_table(source, encoding="windows-1252", delimiter="|")
    assert [read.header, *read.rows] == [["a", "b,c"], ["café", "1,2"]]
    with pytest.raises(BadTable, match="not written in utf-8: byte 10 "):
        read_table(source, encoding="utf-8")


def test_the_line_by_which_excel_names_the_delimiter_is_no_header(tmp_path: Path) -> None:
    read = read_table(csv_file(tmp_path / "t.csv", "sep=;\r\na;b\r\n1,5;2\r\n"))
    assert (read.header, read.rows) == (["a", "b"], [["1,5", "2"]])


def test_one_column_is_a_table_too(tmp_path: Path) -> None:
    read = read_table(csv_file(tmp_path / "t.csv", "name\nMiller\nSmith\n"))
    assert (read.header, read.rows) == (["name"], [["Miller"], ["Smith"]])


def test_a_cell_may_be_longer_than_the_library_allows(tmp_path: Path) -> None:
    read = read_table(csv_file(tmp_path / "t.csv", f"a,b\n1,{'字' * 200_000}\n"))
    assert len(read.rows[0][1]) == 200_000


# -- the shape of sheets --------------------------------------------------------------------------------------------


def test_a_workbook_full_of_traps(tmp_path: Path) -> None:
    """B061, B063, B065."""
    facts = FACTS["tables/d_mess.xlsx"]
    read = read_table(CASES / "tables/d_mess.xlsx")
    assert len(read.rows) == facts["data_rows"]
    assert len(set(read.header)) == len(read.header) == 6
    assert read.doubled == [facts["duplicate_header"]]
    assert sorted(read.merged) == sorted(facts["merged"])
    assert read.formulas == 1
    assert read.blank_rows == facts["used_range_ends_at_row"] - 1 - facts["data_rows"]
    assert read.rows[3] == ["0100", "", "13900000001", "123456789012", "", ""]
    cells = {cell for row in read.rows for cell in row}
    assert set(facts["must_stay_text"]) <= cells


def test_a_doubled_header_and_a_record_of_two_lines() -> None:
    """B065."""
    facts = FACTS["tables/d_dup_header_multiline.csv"]
    read = read_table(CASES / "tables/d_dup_header_multiline.csv")
    assert len(read.rows) == facts["rows"]
    assert read.header == ["name", "age", "name (2)", "note"]
    assert read.doubled == ["name"]
    assert any('"name (2)"' in it for it in read.problems)
    assert any("\n" in cell for row in read.rows for cell in row)


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("a,a,a", ["a", "a (2)", "a (3)"]),
        ("a (2),a,a", ["a (2)", "a", "a (3)"]),
        ("a,,b", ["a", "column 2", "b"]),
        ("column 2,,b", ["column 2", "column 2 (2)", "b"]),
        (" a , a", ["a", "a (2)"]),
    ],
)
def test_no_column_is_ever_lost(header: str, names: list[str], tmp_path: Path) -> None:
    read = read_table(csv_file(tmp_path / "t.csv", f"{header}\n" + "1,2,3\n"[: 2 * len(names)].rstrip(",") + "\n"))
    assert read.header == names
    assert len(read.rows[0]) == len(names)
    assert len(read.problems) >= 1


def test_rows_of_other_lengths_lose_nothing_and_are_told(tmp_path: Path) -> None:
    read = read_table(csv_file(tmp_path / "t.csv", "\na,b\n1\n1,2,3\n,,,\n4,5\n"))
    assert read.header == ["a", "b", "column 3"]
    assert read.rows == [["1", "", ""], ["1", "2", "3"], ["4", "5", ""]]
    assert read.blank_rows == 2
    told = " ".join(read.problems)
    assert all(it in told for it in ("header stands in row 2", "shorter than the header: 1", "row 3", "column 3"))


def test_kinds_of_values_become_the_texts_that_people_would_write(tmp_path: Path) -> None:
    rows = [["h"] * 7, ["0012", 12, 0.1, 1e21, date(2026, 11, 30), datetime(2026, 11, 30, 8, 5), True]]
    read = read_table(workbook(tmp_path / "t.xlsx", rows, at=(2, 0)))
    shown = ["0012", "12", "0.1", "1000000000000000000000", "2026-11-30", "2026-11-30 08:05:00", "TRUE"]
    assert [it.removesuffix(" 00:00:00") for it in read.rows[0]] == shown
    assert any("16 digits" in it for it in read.problems)
    assert any("row 3" in it for it in read.problems)


def test_a_sheet_may_be_chosen(tmp_path: Path) -> None:
    book = Workbook(str(tmp_path / "t.xlsx"))
    for name in ("one", "二"):
        book.add_worksheet(name).write_column(0, 0, ["h", name])
    book.close()
    first, second = read_table(tmp_path / "t.xlsx"), read_table(tmp_path / "t.xlsx", sheet="二")
    assert (first.rows, second.rows) == ([["one"]], [["二"]])
    assert any('sheet "one"' in it for it in first.problems)
    with pytest.raises(BadTable, match='no sheet called "x"; there are one, 二'):
        read_table(tmp_path / "t.xlsx", sheet="x")


# -- what is written is read again as it was ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_values_stay_texts_on_the_way_round(kind: str, tmp_path: Path) -> None:
    """B061, B063: twice, through both formats."""
    first = read_table(CASES / "tables/d_mess.xlsx")
    path = tmp_path / f"t.{kind}"
    (write_csv if kind == "csv" else write_xlsx)(path, first.header, first.rows)
    again = read_table(path)
    assert (again.header, again.rows) == (first.header, first.rows)
    if kind == "xlsx":
        sheet = zipfile.ZipFile(path).read("xl/worksheets/sheet1.xml").decode()
        assert "<f>" not in sheet
        assert "<v>" not in sheet  # neither numbers nor formulas: inline strings only
        assert sheet.count('t="inlineStr"') == 8 * 6


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8", "gb18030"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_no_csv_cell_is_computed_and_each_comes_back(encoding: str, delimiter: str, tmp_path: Path) -> None:
    """B063."""
    rows = [[text, "x"] for text in ACTIVE]
    write_csv(tmp_path / "t.csv", ["=h", "b"], rows, encoding=encoding, delimiter=delimiter)
    with (tmp_path / "t.csv").open(encoding=encoding, newline="") as file:
        raw = list(csv.reader(file, delimiter=delimiter))
    assert [row[0] for row in raw] == [f"'{text}" for text in ("=h", *ACTIVE)]
    again = read_table(tmp_path / "t.csv")
    assert [again.header, *again.rows] == [["=h", "b"], *rows]


def test_negative_numbers_stay_numbers_for_programs() -> None:
    assert [marked(it) for it in ("-3.00", "-7,25", "-1.234,50", "-1-1", "-1e5|x")] == [
        "-3.00",
        "-7,25",
        "-1.234,50",
        "'-1-1",
        "'-1e5|x",
    ]


@given(st.text(alphabet=st.sampled_from(list("'=+-@\t\ra1")), max_size=6))
def test_every_mark_comes_off_again(text: str) -> None:
    assert unmarked(marked(text)) == text
    assert marked(text)[:1] not in "=+@\t\r" or text == ""


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_no_value_ends_an_export(kind: str, tmp_path: Path) -> None:
    """B067."""
    long = "字" * 39_999 + "."
    rows = [["a\x0bb\x00c\x1bd\ud800e\ufffe", long], ["_x0041_", "https://x.example/?a=1"], ["𠮷" * 20_000, " y "]]
    path = tmp_path / f"t.{kind}"
    done = (write_csv if kind == "csv" else write_xlsx)(path, ["h", "long"], rows)
    assert done.control == 5
    again = read_table(path)
    assert again.rows[0][0] == "abcde"
    assert again.rows[1] == rows[1]
    if kind == "csv":
        assert (again.rows[0][1], again.rows[2][0], done.cut) == (long, "𠮷" * 20_000, 0)
    else:
        assert done.cut == 2
        for cell in (again.rows[0][1], again.rows[2][0]):
            assert cell.endswith(CUT)
            assert MAX_CELL - 1 <= len(cell.encode("utf-16-le")) // 2 <= MAX_CELL
        assert len(done.notes()) == 2


def test_a_text_of_just_the_longest_is_whole(tmp_path: Path) -> None:
    done = write_xlsx(tmp_path / "t.xlsx", ["h"], [["x" * MAX_CELL], ["x" * (MAX_CELL + 1)]])
    again = read_table(tmp_path / "t.xlsx")
    assert (done.cut, again.rows[0][0]) == (1, "x" * MAX_CELL)


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("Board: a*b [x]?/\\", "Board  a b  x"),
        ("板" * 40, "板" * 31),
        ("𠮷" * 20, "𠮷" * 15),
        ("'quoted'", "quoted"),
        ("", "Sheet1"),
        ("History", "Sheet1"),
        ("***", "Sheet1"),
    ],
)
def test_any_name_becomes_one_that_a_sheet_may_have(name: str, made: str, tmp_path: Path) -> None:
    """B067."""
    assert sheet_name(name) == made
    write_xlsx(tmp_path / "t.xlsx", ["h"], [["x"]], name=name)
    assert read_table(tmp_path / "t.xlsx").sheet == made


def test_the_same_table_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_xlsx(tmp_path / name, ["h"], [["x"]])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# -- bad ones, and those that are made to do harm -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "file is empty"),
        (b"\n\n , ,\n", "no text in any cell"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 more", "password"),
        (b"PK\x03\x04 and no more", "damaged"),
        (b"PK\x05\x06" + bytes(18), "zip archive"),
        (b"<!DOCTYPE html><p>a,b", "web page"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "no text"),
        (b'a,b\n1,"2\n3,4\n', "never closed"),
    ],
)
def test_what_is_no_table_says_what_it_is(data: bytes, word: str, tmp_path: Path) -> None:
    with pytest.raises(BadTable, match=word):
        read_table(csv_file(tmp_path / "t", data))


def test_a_quotation_mark_that_stands_alone_is_told(tmp_path: Path) -> None:
    read = read_table(csv_file(tmp_path / "t.csv", 'a,b\n"5" wide,2\n'))
    assert read.rows[0][1] == "2"
    assert any("Quotation marks" in it for it in read.problems)


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_a_workbook_that_was_cut_is_damaged(share: float, tmp_path: Path) -> None:
    whole = (CASES / "tables/d_mess.xlsx").read_bytes()
    with pytest.raises(BadTable, match="damaged"):
        read_table(csv_file(tmp_path / "t.xlsx", whole[: int(len(whole) * share)]))


def changed(path: Path, part: str, old: bytes, new: bytes) -> Path:
    with zipfile.ZipFile(CASES / "tables/d_mess.xlsx") as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            assert name != part or old in data
            target.writestr(name, data.replace(old, new) if name == part else data)
    return path


def test_two_cells_far_apart_cost_nothing(tmp_path: Path) -> None:
    """They span 17 billion cells; no more than the two are ever looked at."""
    far = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    source = changed(tmp_path / "t.xlsx", "xl/worksheets/sheet1.xml", b"</sheetData>", far)
    with pytest.raises(BadTable, match="1048576 rows and 16384 columns"):
        read_table(source)


def test_what_unpacks_to_too_much_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = changed(tmp_path / "t.xlsx", "xl/worksheets/sheet1.xml", b"plain", b" " * 100_000)
    monkeypatch.setattr(scan_xlsx, "MAX_UNPACKED", 100_000)
    with pytest.raises(BadTable, match="unpacks to more than"):
        read_table(source)


def test_entities_are_refused(tmp_path: Path) -> None:
    laughs = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><worksheet '
    with pytest.raises(BadTable, match="damaged"):
        read_table(changed(tmp_path / "t.xlsx", "xl/worksheets/sheet1.xml", b"<worksheet ", laughs))


@pytest.mark.parametrize(("limit", "value"), [("MAX_ROWS", 3), ("MAX_COLUMNS", 1), ("MAX_CELLS", 5)])
def test_too_large_a_table_is_refused(limit: str, value: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = csv_file(tmp_path / "t.csv", "a,b\n1,2\n3,4\n5,6\n")
    monkeypatch.setattr(table, limit, value)
    with pytest.raises(BadTable, match=f"too large: .*{value} "):
        read_table(source)


def test_too_large_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_csv, "MAX_BYTES", 3)
    with pytest.raises(BadTable, match="larger than"):
        read_table(csv_file(tmp_path / "t.csv", "a,b\n"))
