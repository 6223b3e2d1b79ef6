"""The ways in which a model writes (or fails to write) the JSON it was asked for."""

from __future__ import annotations

import json
from collections.abc import Callable

from integrations.demo.wire import JsonObject


def _refusal(_: str) -> str:
    return "I'm sorry, but I can't help with that request."


ANSWERS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "fenced": lambda text: f"Here is the result:\n```json\n{text}\n```\nAnything else?",
    "fenced_no_label": lambda text: f"```\n{text}\n```",
    "think": lambda text: f'<think>Perhaps {{"label": "other"}}? No.</think>\n{text}',
    "lone_think": lambda text: f'Let me see {{"label": 1}} … done.\n</think>\n{text}',
    "citation": lambda text: f"{text}\n\nSource: [1] price list {{2024}}",
    "invalid_json": lambda text: text[:-1] + ", oops",
    "refusal": _refusal,
    "nul": lambda text: text.replace('"summary": "', '"summary": "\\u0000', 1),
    "surrogate": lambda text: text.replace('"summary": "', '"summary": "\\ud800', 1),
}


def written(answer: str, outputs: JsonObject) -> JsonObject:
    """The outputs of a workflow whose model wrote `outputs` as text in the given form of ANSWERS.

    nul and surrogate put their character into the summary of the outputs themselves: a store would choke on it.
    """
    text = ANSWERS[answer](json.dumps(outputs, ensure_ascii=False))
    if answer in ("nul", "surrogate"):
        changed: JsonObject = json.loads(text)
        return changed
    return {"text": text}
