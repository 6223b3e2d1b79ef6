"""Whatever a model makes up for the arguments: an answer that it can read, and never a failure of the board."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from board.tools.verbs import VERBS
from tests.api.conftest import BOOTSTRAP, Api
from tests.tools.conftest import DIRECT, OUTSIDE

WORDS = st.sampled_from(
    [
        *("", " ", "trial", "question", "call", "A", "null", "none", "[]", "{}", "[1]", '{"a": 1}', "{'a': 1}", "a,b"),
        *("0", "-1", "1e9", "9" * 30, "done", "P0", "always", "2026-11-30T09:00:00+08:00", "\u200b", "😀", "x" * 3000),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


GOOD = {"type": "trial", "task_id": "A", "note": "x", "question": "May I?", "result": {"a": 1}}


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
@settings(max_examples=25, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_arguments_get_an_answer(one_api: Api, verb: Any, data: st.DataObject) -> None:
    if one_api.get("/types/call").status_code == 404:
        one_api.types(DIRECT, OUTSIDE)
        one_api.submit("A", "call")
    names = [name for it in verb.arguments for name in (it.name, it.flat_name) if it.name != "wait_seconds"]
    good = {it.name: GOOD[it.name] for it in verb.arguments if it.required}
    odd = data.draw(st.dictionaries(st.sampled_from(names), WORDS | JSON, min_size=1, max_size=2), label="odd")
    answer = httpx2.post(
        f"{one_api.url}/integrations/dify/{verb.name}",
        json=good | odd,
        headers={"X-API-Key": BOOTSTRAP},
        trust_env=False,
        verify=False,
        timeout=30,
    )
    assert answer.status_code in (200, 201, 400, 404, 409, 422), answer.text
    assert answer.json()["message"]
