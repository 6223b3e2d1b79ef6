"""The events of messages, however the bytes were cut on their way."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.dify.client import Run
from integrations.dify.errors import ApiError
from integrations.dify.live import CutShort
from integrations.dify.talk import LiveTalk
from tests.integrations.dify.doubles import Canned, NotedJob

IDS = {"task_id": "t", "conversation_id": "c-1", "message_id": "m-1", "created_at": 1}
USAGE = {"usage": {"total_tokens": 12, "total_price": "0.0021", "currency": "USD"}}
CHAT = [
    {"event": "agent_thought", "tool": "search", **IDS},
    {"event": "message", "answer": "Grüße,\u2028", **IDS},
    {"event": "of a later Dify", "answer": "no", **IDS},
    {"event": "message", "answer": "你好 😀", **IDS},
    {"event": "message_end", "metadata": USAGE, **IDS},
]


def stream(events: list[dict[str, Any]], end: str = "\n") -> bytes:
    frames = [f"data: {json.dumps(event, ensure_ascii=False)}{end}{end}" for event in events]
    return f"event: ping{end}{end}: note{end}".join(["", *frames]).encode()


def watched(pieces: list[bytes], **more: Any) -> tuple[LiveTalk, Run]:
    live = LiveTalk(NotedJob(None, {}))
    run = asyncio.run(live.watch(Canned(pieces, **more)))
    assert run is not None
    return live, run


@given(cuts=st.lists(st.integers(0, 1500), max_size=12), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_any_cut_and_any_line_end_give_the_same_answer(cuts: list[int], end: str) -> None:
    data = stream(CHAT, end)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    live, run = watched([data[a:b] for a, b in pairwise(edges)])
    assert run == Run("m-1", "succeeded", {"answer": "Grüße,\u2028你好 😀"}, None, 12)
    assert (live.cost, live.ids) == ("0.0021 USD", {"conversation_id": "c-1", "message_id": "m-1"})
    assert isinstance(live.job, NotedJob)
    assert live.job.steps == ["search"]


def test_an_agent_that_says_the_whole_answer_once_more_is_not_taken_twice() -> None:
    events = [
        {"event": "agent_message", "answer": "Good ", **IDS},
        {"event": "agent_message", "answer": "day", **IDS},
        {"event": "message", "answer": "Good day.", **IDS},
        {"event": "message_end", "metadata": {}, **IDS},
    ]
    assert watched([stream(events)])[1].outputs == {"answer": "Good day."}


def test_what_a_moderator_replaced_is_gone() -> None:
    events = [*CHAT[:2], {"event": "message_replace", "answer": "Not allowed.", **IDS}, CHAT[-1]]
    assert watched([stream(events)])[1].outputs == {"answer": "Not allowed."}


def test_an_end_that_was_not_seen_is_no_answer() -> None:
    with pytest.raises(CutShort):
        watched([stream(CHAT[:-1])])


def test_an_error_in_the_stream_ends_it_at_once() -> None:
    """Dify keeps the line open after it."""
    error = {"event": "error", "code": "completion_request_error", "message": "429", "status": 400, **IDS}
    with pytest.raises(ApiError):
        watched([stream([*CHAT[:2], error])])
