"""Where a payload names files."""

from __future__ import annotations

from board.files.references import is_file_id, new_file_id, references

ONE, TWO = new_file_id(), new_file_id()


def test_ids_are_new_each_time_and_known_by_their_form() -> None:
    assert ONE != TWO
    assert is_file_id(ONE)
    assert not any(is_file_id(it) for it in ("file_1", ONE + "0", ONE.upper(), None, 3, "photo.png"))


def test_every_reference_is_found_however_deep() -> None:
    payload = {
        "photo": {"file": ONE, "size": 3},
        "list": [{"file": TWO}, [{"deep": {"file": ONE}}], "text"],
        "file": {"file": "photo.png"},
    }
    assert sorted(references(payload)) == [
        ("payload.list[0].file", TWO),
        ("payload.list[1][0].deep.file", ONE),
        ("payload.photo.file", ONE),
    ]


def test_the_payload_itself_may_be_one() -> None:
    assert list(references({"file": ONE})) == [("payload.file", ONE)]


def test_a_payload_of_great_depth_is_read() -> None:
    deep: dict[str, object] = {"file": ONE}
    for _ in range(5000):
        deep = {"in": deep}
    assert [file_id for _, file_id in references(deep)] == [ONE]
