"""A mail to several: who gets it, who sees whom, and nobody gets it where one is refused."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from integrations.mail import action
from integrations.mail.message import compose, harmless, on_the_way, recipients_of
from integrations.mail.parties import MOST, BadMail, Party, Recipients
from tests.rig.mail import MailServer
from tests.rig.working import OpenWorking, WorkingBoard

INPUTS: dict[str, Any] = {
    "to": "{{ payload.to }}",
    "cc": ["王芳 <wang@example.org>", "{{ payload.assistant }}"],
    "bcc": ["archive@example.org", "boss@example.org"],
    "subject": "Offer",
    "text": "{{ result.text }}",
    "html": "<p>{{ result.text | e }}</p>",
}
PAYLOAD = {"to": ["li@example.org", "Zhao <zhao@example.org>"], "assistant": "", "text": "5 < 6"}
EVERYBODY = ["li@example.org", "zhao@example.org", "wang@example.org", "archive@example.org", "boss@example.org"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(action, "NOT_NOW_SECONDS", 0.05)


def mailing(board: WorkingBoard, url: str) -> None:
    board.apply(connections=[{"name": "post", "kind": "mail", "url": url, "sender": "board@example.org"}])
    board.type("write", use="echo", action={"use": "mail", "connection": "post", "inputs": INPUTS})
    board.submit(type="write", payload=PAYLOAD)


def test_to_cc_and_bcc_in_text_and_html(working: OpenWorking, mail_server: MailServer) -> None:
    board = working()
    mailing(board, mail_server.url)
    board.wait("T-1", "done")
    [mail] = mail_server.mails
    parsed = mail.parsed
    assert mail.recipients == EVERYBODY
    assert (parsed["To"], parsed["Cc"]) == ("li@example.org, Zhao <zhao@example.org>", "王芳 <wang@example.org>")
    assert b"archive" not in mail.raw
    assert b"boss" not in mail.raw
    assert parsed.get_content_type() == "multipart/alternative"
    text, html = parsed.iter_parts()
    assert (text.get_content_type(), text.get_content().strip()) == ("text/plain", "5 < 6")
    assert (html.get_content_type(), html.get_content().strip()) == ("text/html", "<p>5 &lt; 6</p>")
    [operation] = board.operations()
    assert operation["target"].startswith("Mail to li@example.org and 4 others by ")
    assert re.search("^Bcc: archive@example.org, boss@example.org", operation["body"], re.MULTILINE)


@pytest.mark.parametrize(
    ("answers", "status", "words"),
    [
        (["250 OK", "450 4.2.0 busy"], "done", None),
        (["450 4.2.0 busy", "250 OK", "550 5.1.1 no such user"], "failed", "refused wang@example.org: 550 5.1.1"),
    ],
    ids=["not now", "never"],
)
def test_one_that_is_refused_holds_it_back_for_all(
    working: OpenWorking, mail_server: MailServer, answers: list[str], status: str, words: str | None
) -> None:
    """Half of a mail cannot be sent again. A refusal that stays counts before one that passes."""
    mail_server.rcpt = list(answers)
    board = working()
    mailing(board, mail_server.url)
    task = board.wait("T-1", status)
    assert [mail.recipients for mail in mail_server.mails] == ([EVERYBODY] if status == "done" else [])
    assert words is None or words in task["last_error"]
    assert board.deliveries()[0]["outcome"] == ("transient" if status == "done" else "rejected")


def test_every_try_goes_to_those_to_whom_the_first_one_went(working: OpenWorking, mail_server: MailServer) -> None:
    """The type names somebody else when a person has it sent again: the mail that was composed is the one that goes."""
    mail_server.data = ["lose"]
    board = working()
    mailing(board, mail_server.url)
    board.wait("T-1", "needs_review")
    first = mail_server.mails[0]
    composed = board.operations()[0]["body"].encode()
    assert recipients_of(composed) == first.recipients == EVERYBODY
    board.decide("T-1", "not_happened", reason="It is not in the log.")
    board.wait("T-1", "done")
    _, second = mail_server.mails
    assert (second.recipients, second.raw) == (first.recipients, first.raw)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"to": []}, "inputs.to is empty"),
        ({"to": ["", None]}, "inputs.to is empty"),
        ({"to": "a@x.org", "cc": ["b@x.org", "c@x.org, d@x.org"]}, "inputs.cc[1] holds no single mail address"),
        ({"to": "a@x.org", "bcc": "b@x.org; c@x.org"}, "Several are given as a list"),
        ({"to": ["a@x.org\r\nBcc: all@x.org"]}, "inputs.to[0] holds no single"),
        ({"to": ["a@x.org", 7]}, "inputs.to[1] is empty"),
        ({"to": [f"a{n}@x.org" for n in range(MOST + 1)]}, "at most 100 are allowed"),
    ],
)
def test_what_is_no_list_of_addresses(inputs: dict[str, Any], words: str) -> None:
    with pytest.raises(BadMail) as refused:
        Recipients.read(inputs)
    assert words in str(refused.value)


def test_an_address_counts_once() -> None:
    found = Recipients.read({"to": ["a@x.org", "A <a@x.org>"], "cc": "a@x.org", "bcc": "b@x.org"})
    assert (found.specs, str(found)) == (["a@x.org", "b@x.org"], "a@x.org and 1 other")


def test_a_blind_copy_in_a_folded_header_is_taken_out_and_nothing_else() -> None:
    hidden = tuple(Party("名字" * 20, f"hidden{n}@x.org") for n in range(30))
    text = "Hello\nBcc: this line is text\n"
    mail = compose(Party("", "me@x.org"), Recipients((Party("", "a@x.org"),), bcc=hidden), "S", text, datetime.now(UTC))
    sent = on_the_way(mail)
    assert recipients_of(mail) == ["a@x.org", *(it.spec for it in hidden)]
    assert recipients_of(sent) == ["a@x.org"]
    assert b"hidden" not in sent
    assert b"Bcc: this line is text" in sent
    assert [line for line in mail.split(b"\r\n") if line in sent.split(b"\r\n")] == sent.split(b"\r\n")


@pytest.mark.parametrize(
    ("hostile", "left"),
    [
        ("<p onclick=x()>Hi</p><script>x()</script>", "<p>Hi</p>"),
        ('<a href="javascript:x()">y</a>', "<a>y</a>"),
        ('<img src="https://spy.example/p.gif">z', "z"),
        ('<p style="display:none">w</p><iframe src="https://x"></iframe>', "<p>w</p>"),
        ('<a href="https://example.org/">ok</a>', '<a href="https://example.org/">ok</a>'),
    ],
)
def test_html_neither_runs_nor_fetches_nor_hides(hostile: str, left: str) -> None:
    """The words may be those of an AI, or of whoever wrote to it."""
    assert harmless(hostile) == left
