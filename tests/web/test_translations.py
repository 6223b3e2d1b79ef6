"""Nothing that a page says is missing in Chinese."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

from board.web import wording
from tests.web.conftest import Site

ROOT = Path(__file__).parent.parent.parent
KEYWORDS: dict[str, Any] = {"_": None, "gettext": None, "ngettext": (1, 2), "N_": None, "NN_": (1, 2)}
PLACES = re.compile(r"%\(\w+\)s|\{\w+\}|%%")


def used() -> Iterator[str | tuple[str, ...]]:
    for folder, methods in (("board", [("**.py", "python")]), ("templates", [("**.html", "jinja2")])):
        for _, _, text, _, _ in extract_from_dir(ROOT / folder, method_map=methods, keywords=KEYWORDS):
            yield text


def catalogue(path: str) -> Catalog:
    with (ROOT / "board" / "locale" / path).open("rb") as file:
        return read_po(file)


TEXTS = sorted(set(used()), key=str)


def test_the_template_lists_exactly_what_is_used() -> None:
    listed = {message.id if isinstance(message.id, str) else tuple(message.id) for message in catalogue("board.pot")}
    assert listed - {""} == set(TEXTS)
    assert len(TEXTS) > 300


def test_every_text_is_there_in_chinese() -> None:
    chinese = catalogue("zh_CN/LC_MESSAGES/board.po")
    missing = []
    for text in TEXTS:
        message = chinese.get(text if isinstance(text, str) else text[0])
        words = message.string if message else ""
        if not (words if isinstance(words, str) else words[0]) or (message and message.fuzzy):
            missing.append(text)
    assert missing == []
    known = {text if isinstance(text, str) else text[0] for text in TEXTS}
    assert [
        message.id
        for message in chinese
        if message.id and (message.id if isinstance(message.id, str) else message.id[0]) not in known
    ] == [], "no longer used"


def test_a_translation_has_the_same_places_to_fill() -> None:
    for message in catalogue("zh_CN/LC_MESSAGES/board.po"):
        if not message.id:
            continue
        given = [message.id] if isinstance(message.id, str) else list(message.id)
        words = [message.string] if isinstance(message.string, str) else list(message.string)
        assert set(PLACES.findall(given[-1])) == set(PLACES.findall(words[0])), given
        assert not re.search(r"[\u4e00-\u9fff][,;:?!]", words[0]), f"half-width punctuation: {words[0]}"


@pytest.mark.parametrize("table", ["STATUS", "EVENT", "REASON", "OPERATION", "VERDICT", "DECIDED", "ROLE", "CAUSE"])
def test_every_name_of_the_contract_has_a_label(table: str) -> None:
    from board.access.rights import Role
    from board.ports import Cause
    from board.review.policy import VERDICTS, Reason
    from board.tasks import history
    from board.tasks.states import Status

    verdicts = {verdict for offered in VERDICTS.values() for verdict in offered}
    names: dict[str, set[str]] = {
        "STATUS": set(Status),
        "EVENT": set(history.KINDS.values()) | {"edited", "duplicate", "stale_result", "cancel_requested"},
        "REASON": set(Reason),
        "OPERATION": {"reserved", "sent", "confirmed", "rejected", "unknown"},
        "VERDICT": verdicts,
        "DECIDED": verdicts,
        "ROLE": set(Role),
        "CAUSE": set(Cause),
    }
    assert {str(name) for name in names[table]} <= set(getattr(wording, table))


def test_refusals_are_said_in_chinese(site: Site) -> None:
    visitor = site.visitor("viewer", lang="zh-CN")
    assert "没有权限" in visitor.get("/tasks/T-1/edit").text or "这里什么也没有" in visitor.get("/tasks/T-1/edit").text
    answer = site.stranger(lang="zh-CN").post("/login", email="x@example.org", password="wrong")
    assert "邮箱地址或密码不正确。" in answer.text
    review = site.review()
    reviewer = site.visitor("reviewer", lang="zh-CN")
    fields = reviewer.form(f"/reviews/{review}", "approve")
    site.visitor("operator").decide(review, "reject", reason_class="wrong")
    page = reviewer.post(f"/reviews/{review}/decision", **fields).text
    assert "这项审核已经结束。" in page
    assert "operator@example.org 已驳回。" in page
    assert "评判" in page
