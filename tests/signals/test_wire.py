"""Signals as messages: within the limit, in order, without repeats."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from board.signals.signal import Call, Changed, Channel, Progress, Signal, Text
from board.signals.wire import MAX_BYTES, MAX_TEXT, Batch, decode

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=3000)
SIGNALS = st.one_of(
    st.sampled_from(list(Call)),
    st.builds(Changed, st.integers(1, 2**63 - 1)),
    st.builds(Progress, st.integers(1, 9), st.integers(1, 3), st.none() | st.floats(0, 100), st.none() | TEXTS),
)


def sent(signals: list[Signal]) -> list[tuple[Channel, str]]:
    batch = Batch()
    for signal in signals:
        batch.add(signal)
    return batch.messages("me")


def heard(messages: list[tuple[Channel, str]]) -> list[Signal]:
    return [signal for _, text in messages for signal in decode(text)[1]]


@given(st.lists(SIGNALS, max_size=30), st.lists(TEXTS, max_size=10))
def test_what_is_sent_is_heard_once_and_fits_every_carrier(signals: list[Signal], pieces: list[str]) -> None:
    offset = 0
    for piece in pieces:
        signals = [*signals, Text(7, 1, offset, piece)]
        offset += len(piece)
    messages = sent(signals)
    assert all(len(text.encode()) < MAX_BYTES for _, text in messages)
    came = heard(messages)
    others = [it for it in came if not isinstance(it, Text)]
    assert len(others) == len(set(others))
    assert {it for it in signals if isinstance(it, Call | Changed)} == {
        it for it in others if not isinstance(it, Progress)
    }
    last = {(it.task, it.attempt): it for it in signals if isinstance(it, Progress)}
    assert {it for it in others if isinstance(it, Progress)} == set(last.values())
    texts = [it for it in came if isinstance(it, Text)]
    assert "".join(it.text for it in texts) == "".join(pieces)
    assert [it.offset for it in texts] == [sum(len(it.text) for it in texts[:n]) for n in range(len(texts))]


def test_the_end_of_a_task_comes_behind_what_was_said_of_it() -> None:
    signals = [Changed(1), Text(1, 1, 0, "x" * 20_000), Progress(1, 1, 50, None)]
    came = heard(sent(signals))
    assert came[-1] == Changed(1)


def test_pieces_that_do_not_follow_on_each_other_stay_apart() -> None:
    came = heard(sent([Text(1, 1, 0, "ab"), Text(1, 1, 2, "cd"), Text(2, 1, 0, "!"), Text(1, 1, 9, "ef")]))
    assert came == [Text(1, 1, 0, "abcd"), Text(1, 1, 9, "ef"), Text(2, 1, 0, "!")]


def test_more_text_than_anybody_reads_is_left_out() -> None:
    came = heard(sent([Text(1, 1, n * 1000, "x" * 1000) for n in range(500)]))
    assert sum(len(it.text) for it in came if isinstance(it, Text)) == MAX_TEXT


def test_many_moves_take_few_messages() -> None:
    messages = sent([Changed(10**9 + n) for n in range(10_000)])
    assert len(messages) < 30
    assert heard(messages) == [Changed(10**9 + n) for n in range(10_000)]


def test_calls_go_to_those_who_work_and_the_rest_to_those_whom_callers_ask() -> None:
    messages = sent([Call.WORK, Call.OUTSIDE, Changed(1), Call.CANCEL, Call.REVIEWS])
    assert {channel: decode(text)[1] for channel, text in messages} == {
        Channel.WORKERS: [Call.WORK, Call.CANCEL],
        Channel.CALLERS: [Call.OUTSIDE, Call.REVIEWS, Changed(1)],
    }


@pytest.mark.parametrize(
    "message", ["", "x", "[]", "{}", "1", '{"from": "a", "text": [1]}', '{"from": "a", "changed": "x"}']
)
def test_what_is_no_message_is_said_to_be_none(message: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(message)


def test_what_a_newer_board_says_besides_is_left_out() -> None:
    message = json.dumps({"from": "new", "calls": ["work", "dance"], "songs": [1], "changed": [1]})
    assert decode(message) == ("new", [Call.WORK, Changed(1)])


def test_thousands_of_changed_tasks_fill_few_messages_and_all_arrive() -> None:
    batch = Batch()
    many = [2**63 - 1 - number for number in range(5000)]
    batch.add_changed(many)
    batch.add_changed(many)
    messages = batch.messages("me")
    assert all(len(text.encode()) < MAX_BYTES for _, text in messages)
    assert len(messages) < 20
    assert heard(messages) == list(map(Changed, many))
