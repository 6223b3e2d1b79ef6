"""What in an AI's text a reviewer should be wary of: words that want to decide for him, and targets out of nowhere.

Found by plain patterns. They miss what is said otherwise and may hit what is harmless, so they only ask to look twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

_MOST = 6  # of one kind: more tell nobody anything new
_LOOKED_AT = 100  # places: a text that stands in judgement and output is found twice
_READ = 200_000  # characters: as many as a page shows
_AROUND = 40  # characters of the text before and after what was found

_TO_REVIEWER = re.compile(
    r"\b(?:approve|accept|sign off on)\s+(?:this|it|the\s+(?:task|request|payment|order|review|result|output))\b"
    r"|\b(?:dear|note to|attention|message to)\s+(?:the\s+)?(?:human\s+)?(?:reviewer|approver|moderator)s?\b"
    r"|\b(?:click|press|hit|choose)\s+(?:on\s+)?(?:the\s+)?[\"'“‘]?(?:approve|accept|confirm)\b"
    r"|\bignore\s+(?:all\s+|any\s+)?(?:the\s+|your\s+)?(?:previous|prior|above|earlier)\s+(?:instructions?|rules?)\b"
    r"|\bpre-?approved\b|\balready\s+(?:been\s+)?(?:approved|reviewed|verified)\b"
    r"|\b(?:no|without)\s+(?:further\s+)?(?:human\s+)?review\b|\bno need (?:to|for) (?:a\s+)?review\b"
    r"|(?:审核|审批|复核)(?:人员?|员|者)[，,:：]|(?:请|务必|直接|立即|尽快|予以)(?:您?)(?:通过|批准|同意|放行)"
    r"|点击.{0,6}(?:通过|批准|同意|确认)|忽略.{0,6}(?:之前|以上|上述|前面|先前).{0,6}(?:指令|指示|说明|要求|规则)"
    r"|已经?(?:审核|批准|核实|复核)(?:通过|过)?|(?:无需|不需要|不用|免于)(?:再)?(?:人工)?(?:审核|复核|检查)",
    re.IGNORECASE,
)
# A line that is nothing but the word of one of our buttons with some ornament around it.
_BUTTON = re.compile(
    r"^[ \t]*[^\w\s][^\w\n]*(?:approve|reject|revise|undo|通过|批准|驳回|退回修改|撤销)[^\w\n]*$",
    re.IGNORECASE | re.MULTILINE,
)
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")
_ADDRESS = re.compile(r"https?://[^\s<>\"'）)\]】]{1,500}", re.IGNORECASE)
# Numbers of accounts, cards and phones: ten digits and more, also in groups; IBANs.
_NUMBER = re.compile(r"(?<![\w.])(?:[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}|\+?\d(?:[ -]?\d){9,24})(?![\w])")


@dataclass(frozen=True, slots=True)
class Caution:
    """kind: reviewer (speaks to the reviewer), button (looks like one), target (named nowhere but by the AI).
    quote: the place, with a little around it for `reviewer`."""

    kind: str
    quote: str


def cautions(written: Any, known: Any) -> list[Caution]:
    """written: what the AI wrote, known: what the task was given and where it leads; both any JSON value."""
    text = "\n".join(_texts(written))[:_READ]
    said = dict.fromkeys(_quote(text, match) for match in islice(_TO_REVIEWER.finditer(text), _LOOKED_AT))
    drawn = dict.fromkeys(match[0].strip() for match in islice(_BUTTON.finditer(text), _LOOKED_AT))
    found = [Caution("reviewer", quote) for quote in islice(said, _MOST)]
    found += [Caution("button", quote) for quote in islice(drawn, _MOST)]
    return found + [Caution("target", target) for target in islice(_strange(text, "\n".join(_texts(known))), _MOST)]


def _strange(text: str, known: str) -> Iterator[str]:
    """Mail addresses, hosts and long numbers that do not stand in what is known."""
    given, digits, told = known.lower(), re.sub(r"[\s-]", "", known).lower(), set[str]()
    mails = ((match[0], match[0].lower(), given) for match in _MAIL.finditer(text))
    hosts = ((host, host, given) for match in _ADDRESS.finditer(text) if (host := _host(match[0])))
    numbers = ((match[0], re.sub(r"[\s-]", "", match[0]).lower(), digits) for match in _NUMBER.finditer(text))
    for source in (mails, hosts, numbers):
        for shown, sought, place in source:
            if sought not in place and sought not in told:
                told.add(sought)
                yield shown


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _quote(text: str, match: re.Match[str]) -> str:
    line, over = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
    over = len(text) if over < 0 else over
    start, end = max(match.start() - _AROUND, line), min(match.end() + _AROUND, over)
    words = " ".join(text[start:end].split())
    return f"{'…' if start > line else ''}{words}{'…' if end < over else ''}"


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        it = waiting.pop()
        if isinstance(it, dict):
            waiting += [part for pair in reversed(it.items()) for part in reversed(pair)]
        elif isinstance(it, list | tuple):
            waiting += reversed(it)
        elif it is not None and not isinstance(it, bool):
            yield str(it)
