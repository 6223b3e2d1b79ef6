"""What a complaint is about, how bad it is, and a draft of the reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.demo.judges.words import answer, hits, instruction_of, is_chinese, short

LABELS = {
    "outage": (
        "down",
        "cannot log in",
        "can't log in",
        "error 500",
        "offline",
        "打不开",
        "登录不了",
        "宕机",
        "无法访问",
    ),
    "billing": ("charged", "invoice", "refund", "payment", "扣款", "发票", "退款", "付款", "收费"),
    "delivery": ("late", "parcel", "not arrived", "delivery", "courier", "没到", "没有收到", "快递", "物流", "延迟"),
    "quality": ("broken", "damaged", "crack", "faulty", "stale", "坏", "破损", "质量", "裂"),
}
GRAVE = (
    *("lawyer", "legal", "allerg", "injur", "third time", "police", "press"),
    *("律师", "过敏", "受伤", "第三次", "12315", "媒体", "起诉"),
)
SHORTER = ("short", "brief", "简短", "短一点", "精简")
SORRY = ("apolog", "sorry", "道歉", "抱歉")
GIFT = ("voucher", "discount", "compensat", "优惠券", "补偿", "折扣")

TITLES = {
    "outage": ("service outage", "服务故障"),
    "billing": ("billing", "账务"),
    "delivery": ("delivery", "物流"),
    "quality": ("product quality", "产品质量"),
    "other": ("another matter", "其他问题"),
}
SEVERITY = {"high": ("high", "高"), "medium": ("medium", "中"), "low": ("low", "低")}
STEP = {
    "outage": (
        "Our technicians are working on it and we will write to you within the hour.",
        "技术人员正在处理，一小时内给您答复。",
    ),
    "billing": (
        "We are checking the charge and will return any wrong amount.",
        "我们正在核对这笔费用，多收的部分会退回。",
    ),
    "delivery": (
        "We have asked the carrier where your parcel is and will tell you tomorrow.",
        "我们已向快递公司查询，明天告诉您结果。",
    ),
    "quality": ("Please send us a photo; we will replace the item.", "请发一张照片给我们，我们会为您更换。"),
    "other": ("We are looking into it and will come back to you.", "我们正在了解情况，会尽快回复您。"),
}


def judge(inputs: Mapping[str, str]) -> dict[str, Any]:
    """label, severity, reply, summary, advice, confidence, reasons, risks. The instruction changes the reply."""
    text, instruction = inputs["text"], instruction_of(inputs)
    language = int(is_chinese(text))
    counts = {name: len(hits(text, words)) for name, words in LABELS.items()}
    label = max(counts, key=lambda name: counts[name]) if any(counts.values()) else "other"
    grave = hits(text, GRAVE)
    severity = "high" if grave or label == "outage" else "low" if label == "other" else "medium"
    topics = sum(1 for count in counts.values() if count)
    found = ", ".join(hits(text, LABELS.get(label, ()))) or "-"
    title, level = TITLES[label][language], SEVERITY[severity][language]
    return answer(
        text,
        label=label,
        severity=severity,
        reply=_reply(label, inputs.get("order", ""), instruction, language),
        summary=f"关于{title}的投诉：{short(text)}" if language else f"Complaint about {title}: {short(text)}",
        advice=(
            f"严重程度：{level}。核对事实后发送回复草稿。"
            if language
            else f"Severity {level}. Check the facts, then send the drafted reply."
        ),
        confidence=0.95 if topics == 1 else 0.78 if topics else 0.6,
        reasons=[f"关键词：{found}" if language else f"Keywords: {found}"],
        risks=[f"措辞严重：{'、'.join(grave)}" if language else f"Grave wording: {', '.join(grave)}"] if grave else [],
        instruction=instruction,
    )


def _reply(label: str, order: str, instruction: str, language: int) -> str:
    chinese = language == 1
    about = (f"（订单 {order}）" if chinese else f" (order {order})") if order else ""
    thanks = f"您好，感谢您告诉我们{about}。" if chinese else f"Thank you for telling us{about}."
    parts = [] if hits(instruction, SHORTER) else [thanks]
    if hits(instruction, SORRY):
        parts.append("给您带来不便，我们郑重道歉。" if chinese else "We sincerely apologise for the trouble.")
    parts.append(STEP[label][language])
    if hits(instruction, GIFT):
        parts.append("随信附上一张优惠券。" if chinese else "Please accept the voucher that comes with this letter.")
    if instruction and not hits(instruction, (*SHORTER, *SORRY, *GIFT)):
        parts.append(f"另外：{instruction}" if chinese else f"Also: {instruction}")
    return "".join(parts) if chinese else " ".join(parts)
