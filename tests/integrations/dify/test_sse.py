from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.dify.sse import Event, EventReader, EventTooLarge, read_events
from tests.integrations.dify import cases


def read(chunks: Sequence[bytes], max_bytes: int = 1_000_000) -> list[Event]:
    reader = EventReader(max_bytes)
    return [event for chunk in chunks for event in reader.feed(chunk)] + list(reader.close())


def payloads(events: Sequence[Event]) -> list[dict[str, object]]:
    return [json.loads(event.data) for event in events if event.data is not None]


@pytest.mark.parametrize("name", cases.SSE)
@pytest.mark.parametrize("how", ["as the case says", "whole", "byte by byte"])
def test_case_streams_give_their_events(name: str, how: str) -> None:
    """B015: the same events come out whatever the chunking."""
    expected, data = cases.SSE[name], cases.sse(name)
    chunks = {
        "as the case says": cases.pieces(data, expected["feed_in_chunks"]),
        "whole": [data],
        "byte by byte": [data[i : i + 1] for i in range(len(data))],
    }[how]
    assert b"".join(chunks) == data
    events = read(chunks)
    messages = payloads(events)
    assert [message["event"] for message in messages] == expected["event_names"]
    assert len(messages) == expected["json_events"]
    assert sum(event.name == "ping" for event in events) == expected["pings"]
    texts = [message["data"]["text"] for message in messages if message["event"] == "text_chunk"]  # type: ignore[index]
    assert "".join(texts) == expected["text_chunks_joined"]


LINES = st.sampled_from(
    [
        "data: a",
        "data:b",
        "data",
        "data: ",
        "data:  two",
        "event: ping",
        "event:x",
        ": note",
        ":",
        "id: 7",
        "retry: 3",
        "",
        "data: 你好\u2028world\x85\x0b",
        "data: 😀",
        "unknown: 1",
        "data : no",
        "\ufeffdata: z",
        "event",
    ]
)
STREAMS = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\r"])), max_size=25).map(
    lambda lines: "".join(line + end for line, end in lines).encode()
)


@given(stream=STREAMS | st.binary(max_size=200), cuts=st.lists(st.integers(0, 400), max_size=12))
def test_any_cut_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[a:b] for a, b in pairwise(edges)]
    assert read(chunks) == read([stream])


@given(
    texts=st.lists(
        st.text(alphabet=st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"])), max_size=8
    )
)
def test_what_was_written_is_read_back(texts: list[str]) -> None:
    stream = "".join(f"data: {text}\r\ndata:{text}\r\n\r\nevent: ping\n\n" for text in texts).encode()
    expected: list[Event] = []
    for text in texts:
        expected += [Event("", f"{text}\n{text.removeprefix(' ')}"), Event("ping", None)]
    assert read([stream]) == expected


def test_only_cr_and_lf_end_a_line() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    assert read([f"data: {text}\n\n".encode()]) == [Event("", text)]


def test_a_byte_order_mark_before_the_first_line_does_not_hide_it() -> None:
    assert read([b"\xef", b"\xbb", b"\xbfdata: 1\n\ndata: \xef\xbb\xbf2\n\n"]) == [
        Event("", "1"),
        Event("", "\ufeff2"),
    ]


def test_a_character_cut_in_two_is_whole_again_and_broken_bytes_are_replaced() -> None:
    stream = "data: 世\n\n".encode()
    assert read([stream[:7], stream[7:8], stream[8:]]) == [Event("", "世")]
    assert read([b"data: \xe4\xb8\n\n"]) == [Event("", "\ufffd")]


def test_a_ping_glued_to_data_takes_nothing_away() -> None:
    assert read([b'data: {"a": 1}\nevent: ping\n\ndata: {"b": 2}\n\n']) == [
        Event("ping", '{"a": 1}'),
        Event("", '{"b": 2}'),
    ]


def test_the_last_event_needs_no_blank_line() -> None:
    assert read([b"data: 1\n\ndata: 2"]) == [Event("", "1"), Event("", "2")]
    assert read([b"data: 1\n\ndata: 2\n"]) == [Event("", "1"), Event("", "2")]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_an_event_over_the_limit_stops_the_reading_after_the_events_before_it(size: int) -> None:
    stream = b"data: ok\n\n" + b"data: " + b"x" * 200 + b"\n\n"
    reader, seen = EventReader(100), []

    def feed_all() -> None:
        for start in range(0, len(stream), size):
            for event in reader.feed(stream[start : start + size]):
                seen.append(event)

    with pytest.raises(EventTooLarge):
        feed_all()
    assert seen == [Event("", "ok")]


def test_the_limit_is_for_one_event_not_for_the_stream() -> None:
    assert len(read([b"data: 12345678\n\n" * 50], max_bytes=100)) == 50


def test_many_short_lines_of_one_event_count_together() -> None:
    with pytest.raises(EventTooLarge):
        read([b"data: 123456\n" * 20], max_bytes=100)


async def test_read_events_passes_on_what_the_connection_raises() -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"data: 1\n\ndata: {"
        raise ConnectionResetError

    seen = []

    async def read_all() -> None:
        async for event in read_events(broken()):
            seen.append(event)

    with pytest.raises(ConnectionResetError):
        await read_all()
    assert seen == [Event("", "1")]
