"""What is kept of what an attempt has said."""

from __future__ import annotations

from board.signals.signal import Progress, Text
from board.signals.tail import Tail


def test_the_newest_progress_and_the_text_in_one_piece() -> None:
    tail = Tail(100)
    for said in (Progress(1, 1, 10, None), Text(1, 1, 0, "ab"), Progress(1, 1, 20, "x"), Text(1, 1, 2, "cd")):
        tail.add(said)
    assert tail.said() == [Progress(1, 1, 20, "x"), Text(1, 1, 0, "abcd")]
    tail.clear()
    assert tail.said() == []


def test_a_long_text_keeps_its_end_and_says_where_that_begins() -> None:
    tail = Tail(10)
    for number in range(20):
        tail.add(Text(1, 1, 3 * number, f"{number:02d} "))
    [text] = tail.said()
    assert isinstance(text, Text)
    assert text == Text(1, 1, 51, "17 18 19 ")
    tail.add(Text(1, 1, 60, "x" * 50))
    assert tail.said() == [Text(1, 1, 60, "x" * 50)], "a piece is never cut"


def test_behind_a_lost_piece_it_begins_anew() -> None:
    tail = Tail(100)
    tail.add(Text(1, 1, 0, "lost"))
    tail.add(Text(1, 1, 9, "later"))
    assert tail.said() == [Text(1, 1, 9, "later")]


def test_a_new_attempt_takes_the_place_of_the_old_one() -> None:
    tail = Tail(100)
    tail.add(Progress(1, 1, 90, None))
    tail.add(Text(1, 1, 0, "first"))
    tail.add(Text(1, 2, 0, "second"))
    tail.add(Text(1, 1, 5, "too late"))
    tail.add(Progress(1, 1, 95, None))
    assert tail.said() == [Text(1, 2, 0, "second")]
