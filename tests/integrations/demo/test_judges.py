"""The judges: always the same answer, in the language of the text, and a reviewer's instruction shows."""

from __future__ import annotations

from typing import Any

import pytest

from integrations.demo.judges import articles, complaints, leads

COMMON = {"summary", "advice", "confidence", "reasons", "risks", "by"}


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Please quote 400 boxes, budget £1,200, next week.", "hot"),
        ("Could you send a quote for 30 labels?", "warm"),
        ("I am a student, just looking for information.", "cold"),
        ("Hello there.", "cold"),
        ("We sell SEO and 500 backlinks.", "spam"),
        ("想采购 200 套茶具，预算 3 万元，月底前到货。", "hot"),
        ("想先了解一下，没有想好。", "cold"),
        ("代开发票，价格优惠。", "spam"),
    ],
)
def test_leads(text: str, label: str) -> None:
    answer = leads.judge({"text": text})
    assert answer["label"] == label
    assert answer == leads.judge({"text": text})
    assert answer.keys() >= COMMON
    assert 0 <= answer["confidence"] <= 1


@pytest.mark.parametrize(
    ("text", "label", "severity"),
    [
        ("Your site is down and I cannot log in.", "outage", "high"),
        ("I was charged twice, I want a refund.", "billing", "medium"),
        ("My parcel is late.", "delivery", "medium"),
        ("The cup came broken.", "quality", "medium"),
        ("The cup came broken and I am injured.", "quality", "high"),
        ("Your tone was rude.", "other", "low"),
        ("后台打不开了。", "outage", "high"),
        ("快递还没到。", "delivery", "medium"),
    ],
)
def test_complaints(text: str, label: str, severity: str) -> None:
    answer = complaints.judge({"text": text})
    assert (answer["label"], answer["severity"]) == (label, severity)
    assert answer["reply"]


@pytest.mark.parametrize(
    ("inputs", "verdict", "issues"),
    [
        ({"text": "A plain text about boxes and paper. " * 8}, "approve", 0),
        ({"text": "The best in the world. " + "A plain text about boxes and paper. " * 8}, "revise", 1),
        ({"text": "The the box is 40% lighter, TBD."}, "revise", 4),
        ({"text": "A plain text about boxes and paper. " * 8, "title": "x" * 80}, "revise", 1),
        ({"text": "这是一篇关于纸盒的普通文章，介绍怎样存放纸盒。" * 5}, "approve", 0),
        ({"text": "全国最好的纸盒。" + "这是一篇关于纸盒的普通文章，介绍怎样存放纸盒。" * 5}, "revise", 1),
    ],
)
def test_articles(inputs: dict[str, str], verdict: str, issues: int) -> None:
    answer = articles.judge(inputs)
    assert (answer["verdict"], len(answer["issues"])) == (verdict, issues)


def _chinese(answer: dict[str, Any]) -> bool:
    text = " ".join(
        [answer["summary"], answer["advice"], *answer["reasons"], *answer["risks"], answer.get("reply", "")]
    )
    return any("\u4e00" <= letter <= "\u9fff" for letter in text)


@pytest.mark.parametrize("judge", [leads.judge, complaints.judge, articles.judge])
def test_the_answer_speaks_the_texts_language(judge: Any) -> None:
    assert _chinese(judge({"text": "你好，我想了解一下报价，快递没到。"}))
    assert not _chinese(judge({"text": "Hello, I would like a quote; the parcel is late."}))


@pytest.mark.parametrize("judge", [leads.judge, complaints.judge, articles.judge])
@pytest.mark.parametrize(
    ("text", "word"), [("My parcel is late.", "mention Monday"), ("快递没到，请报价。", "提到周一")]
)
def test_an_instruction_is_named_in_the_reasons(judge: Any, text: str, word: str) -> None:
    assert any(word in reason for reason in judge({"text": text, "instruction": word})["reasons"])


@pytest.mark.parametrize(
    ("text", "instruction", "part"),
    [
        ("My parcel is late.", "please apologise", "apologise"),
        ("My parcel is late.", "offer a voucher", "voucher"),
        ("My parcel is late.", "mention Monday", "mention Monday"),
        ("快递没到。", "加上道歉", "道歉"),
        ("快递没到。", "送一张优惠券", "优惠券"),
        ("快递没到。", "提到周一", "提到周一"),
    ],
)
def test_an_instruction_changes_the_reply(text: str, instruction: str, part: str) -> None:
    before, after = complaints.judge({"text": text}), complaints.judge({"text": text, "instruction": instruction})
    assert part not in before["reply"]
    assert part in after["reply"]


def test_a_shorter_reply_is_shorter() -> None:
    long, short = (complaints.judge({"text": "My parcel is late.", "instruction": i})["reply"] for i in ("", "shorter"))
    assert len(short) < len(long)


def test_a_label_named_by_the_reviewer_is_taken() -> None:
    answer = leads.judge({"text": "Hello there.", "instruction": "This one is hot, we know them."})
    assert (answer["label"], answer["confidence"] > 0.9) == ("hot", True)


def test_a_reviewer_may_accept_or_add_issues() -> None:
    text = "The best in the world."
    assert articles.judge({"text": text, "instruction": "leave it"})["verdict"] == "approve"
    assert "Reviewer: add a price" in articles.judge({"text": text, "instruction": "add a price"})["issues"]
