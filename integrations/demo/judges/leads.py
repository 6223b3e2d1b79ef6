"""How promising an inquiry is: hot, warm, cold or spam."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.demo.judges.words import answer, hits, instruction_of, is_chinese, short

SIGNALS = {
    "budget": ("budget", "£", "€", "$", "usd", "eur", "预算", "万元"),
    "urgency": ("this week", "next week", "asap", "by friday", "end of the month", "尽快", "本周", "下周", "月底前"),
    "intent": ("quote", "quotation", "order", "contract", "sign", "报价", "下单", "采购", "合同", "订购"),
}
DOUBT = ("just looking", "student", "thesis", "next year", "not sure", "maybe", "先了解", "随便看看", "论文", "明年")
SPAM = ("seo", "backlink", "crypto", "casino", "rank first", "guest post", "代开发票", "刷单", "排名第一", "贷款")
RISKS = {
    ("pay after", "90 days", "net 90", "账期", "货到付款"): ("Asks for late payment", "要求延后付款"),
    ("cheapest", "discount", "best price", "最低价", "打折", "便宜"): ("Looks at the price only", "只看价格"),
    ("competitor", "other supplier", "别家", "竞品"): ("Also talks to others", "同时在比较别家"),
}
NAMED = {"hot": ("hot", "热"), "warm": ("warm", "温"), "cold": ("cold", "冷"), "spam": ("spam", "垃圾")}

ADVICE = {
    "hot": ("Call within the hour and send a quote.", "一小时内致电并发送报价。"),
    "warm": ("Write back today and ask for quantity and date.", "今天回复，询问数量和时间。"),
    "cold": ("Send the brochure and ask again in a month.", "发送资料，一个月后再联系。"),
    "spam": ("Do not answer.", "不必回复。"),
}
WHY = {
    "budget": ("Names a budget", "提到预算"),
    "urgency": ("Is in a hurry", "时间紧"),
    "intent": ("Asks for a quote or an order", "要求报价或下单"),
    "doubt": ("Sounds undecided", "意向不明确"),
    "spam": ("Offers something itself", "像推销信息"),
    "none": ("Says little about what is needed", "没有说明具体需求"),
}


def judge(inputs: Mapping[str, str]) -> dict[str, Any]:
    """label, summary, advice, confidence, reasons, risks. A label named in the instruction is taken over."""
    text, instruction = inputs["text"], instruction_of(inputs)
    language = int(is_chinese(text))
    found = [name for name, words in SIGNALS.items() if hits(text, words)]
    doubts, spam = hits(text, DOUBT), hits(text, SPAM)
    label, confidence = _label(len(found), len(doubts), len(spam))
    reasons = [*found, *(["doubt"] if doubts else []), *(["spam"] if spam else [])] or ["none"]
    named = [name for name, words in NAMED.items() if hits(instruction, words)]
    if named:
        label, confidence = named[0], 0.97
    risks = [texts[language] for words, texts in RISKS.items() if hits(text, words)]
    who = inputs.get("company") or ("询盘" if language else "Inquiry")
    return answer(
        text,
        label=label,
        summary=f"{who}：{short(text)}" if language else f"{who}: {short(text)}",
        advice=ADVICE[label][language],
        confidence=confidence,
        reasons=[WHY[name][language] for name in reasons],
        risks=[] if label == "spam" else risks,
        instruction=instruction,
    )


def _label(signals: int, doubts: int, spam: int) -> tuple[str, float]:
    if spam:
        return "spam", 0.96 if not signals else 0.7
    if doubts:
        return ("warm", 0.66) if signals else ("cold", 0.9)
    if signals >= 2:
        return "hot", 0.84 + 0.05 * signals
    return ("warm", 0.9) if signals else ("cold", 0.72)
