"""What the judges share: language, keywords, and the fixed parts of every answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

BY = "Demo stand-in (no AI)"
QUOTED = 60  # characters of a text that a summary repeats


def is_chinese(text: str) -> bool:
    """True when the text holds a noticeable share of Chinese characters."""
    chinese = len(re.findall(r"[\u4e00-\u9fff]", text))
    return chinese * 5 >= len(text.replace(" ", "")) and chinese > 0


def hits(text: str, words: Iterable[str]) -> list[str]:
    """Those of the words that stand in the text, without regard to case; English ones only at a word's start."""
    lower = text.lower()
    return [word for word in words if re.search(rf"\b{re.escape(word)}" if word.isascii() else re.escape(word), lower)]


def wobble(text: str) -> float:
    """A number from 0 to 0.05 that is always the same for a text, so that confidences look less alike."""
    return sha256(text.encode(errors="surrogatepass")).digest()[0] / 255 * 0.05


def short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= QUOTED else line[: QUOTED - 1] + "…"


def answer(
    text: str,
    *,
    summary: str,
    advice: str,
    confidence: float,
    reasons: list[str],
    risks: list[str],
    instruction: str = "",
    **own: Any,
) -> dict[str, Any]:
    """The End node's outputs: the judge's own fields, then what every judgement has."""
    if instruction:
        reasons = [*reasons, took_note(text, instruction)]
    return {
        **own,
        "summary": summary,
        "advice": advice,
        "confidence": round(max(0.0, min(0.99, confidence - 0.05 + wobble(text))), 2),
        "reasons": reasons,
        "risks": risks,
        "by": BY,
    }


def took_note(text: str, instruction: str) -> str:
    return f"已按审核意见调整：{instruction}" if is_chinese(text) else f"Changed as the reviewer asked: {instruction}"


def instruction_of(inputs: Mapping[str, str]) -> str:
    return " ".join(inputs.get("instruction", "").split())
