"""What a reviewer is shown of the difference between two rounds."""

from hypothesis import given
from hypothesis import strategies as st

from board.web.difference import changes, compare


def test_words_and_chinese_characters_are_compared_one_by_one() -> None:
    assert compare("Dear customer, we check it.", "Dear customer, we are sorry.") == [
        ("same", "Dear customer, we "),
        ("gone", "check it"),
        ("new", "are sorry"),
        ("same", "."),
    ]
    assert compare("我们正在处理", "我们马上处理") == [
        ("same", "我们"),
        ("gone", "正在"),
        ("new", "马上"),
        ("same", "处理"),
    ]


def test_nothing_of_either_text_is_lost() -> None:
    before, after = "a  b\n<i>c</i> 好，的 é1.5", "a b\n<b>c</b> 好的！ é1.50"
    parts = compare(before, after)
    assert "".join(text for kind, text in parts if kind != "new") == before
    assert "".join(text for kind, text in parts if kind != "gone") == after


def test_only_fields_that_differ_are_named() -> None:
    before = {"reply": "old", "label": "x", "list": ["a", "b"], "gone": 1}
    after = {"reply": "new", "label": "x", "list": ["a", "c"], "n": 2, "ok": True}
    assert [change.name for change in changes(before, after)] == ["reply", "list 2", "n", "ok", "gone"]
    assert changes("same", "same") == []
    assert changes("one", "two")[0].name == ""


@given(st.text("ab 好。", max_size=40), st.text("ab 好。", max_size=40))
def test_both_texts_can_be_read_from_the_parts(before: str, after: str) -> None:
    parts = compare(before, after)
    assert "".join(text for kind, text in parts if kind != "new") == before
    assert "".join(text for kind, text in parts if kind != "gone") == after
    assert all(text for _, text in parts)


def test_texts_with_little_in_common_are_shown_one_after_the_other() -> None:
    before, after = "a b " * 2000, "a c b d " * 1000
    parts = compare(before, after)
    assert [kind for kind, _ in parts] == ["same", "gone", "new"]
    assert "".join(text for kind, text in parts if kind != "gone") == after
