"""Whether a text may be published as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from integrations.demo.judges.words import answer, hits, instruction_of, is_chinese, short

ABSOLUTE = (
    *("best in the world", "guaranteed", "miracle", "number one", "cures"),
    *("最好", "第一品牌", "国家级", "根治", "百分之百", "绝对"),
)
UNFINISHED = ("lorem ipsum", "tbd", "xxx", "insert here", "待补充", "此处填写")
SOURCES = ("source", "according to", "来源", "根据", "数据显示")
ACCEPT = ("accept", "fine as it is", "leave it", "approve", "可以接受", "不用改", "忽略", "通过")
LONG_TITLE = 70  # characters: what search results show of a title
SHORT_TEXT = (200, 80)  # characters, English and Chinese: less says too little to be published


def judge(inputs: Mapping[str, str]) -> dict[str, Any]:
    """verdict, issues, summary, advice, confidence, reasons, risks. An accepting instruction settles the issues."""
    text, title, instruction = inputs["text"], inputs.get("title", ""), instruction_of(inputs)
    chinese = is_chinese(text)
    issues = _issues(text, title, chinese)
    if instruction:
        if hits(instruction, ACCEPT):
            issues = []
        else:
            issues.append(f"审核意见：{instruction}" if chinese else f"Reviewer: {instruction}")
    verdict = "revise" if issues else "approve"
    risky = hits(text, ABSOLUTE) if issues else []
    advice = {
        ("approve", False): "Publish it.",
        ("approve", True): "可以发布。",
        ("revise", False): f"Mend {len(issues)} thing(s) first.",
        ("revise", True): f"请先修改 {len(issues)} 处。",
    }[verdict, chinese]
    name = title or ("文章" if chinese else "Article")
    return answer(
        text,
        verdict=verdict,
        issues=issues,
        summary=f"{name}：{short(text)}" if chinese else f"{name}: {short(text)}",
        advice=advice,
        confidence=0.96 if not issues else 0.9 if len(issues) > 1 else 0.74,
        reasons=issues or ["没有发现问题" if chinese else "Nothing found that speaks against it"],
        risks=[f"绝对化用语：{'、'.join(risky)}" if chinese else f"Absolute claim: {', '.join(risky)}"]
        if risky
        else [],
        instruction=instruction,
    )


def _issues(text: str, title: str, chinese: bool) -> list[str]:
    """Plain sentences, one an issue."""
    found: list[tuple[bool, str, str]] = [
        (bool(hits(text, ABSOLUTE)), "Makes an absolute claim.", "使用了绝对化用语。"),
        (bool(hits(text, UNFINISHED)), "Holds an unfinished place.", "有未完成的占位内容。"),
        (len(text) < SHORT_TEXT[chinese], "Is very short.", "内容过短。"),
        (len(title) > LONG_TITLE, "The title is too long.", "标题过长。"),
        (bool(re.search(r"\d\s*[%％]", text)) and not hits(text, SOURCES), "A figure has no source.", "数据没有来源。"),
        (bool(re.search(r"\b(\w+) \1\b", text, re.IGNORECASE)), "A word stands twice.", "有重复的词。"),
    ]
    return [in_chinese if chinese else in_english for holds, in_english, in_chinese in found if holds]
