"""The action `mail` on a real mail server: once, under one Message-ID, and every answer told truly."""

from __future__ import annotations

from typing import Any

import pytest

from board.catalogue.apply import BadCatalogue
from board.catalogue.trial import Trial
from integrations.mail import action
from tests.rig.mail import Certificate, MailServer, OpenMailServer
from tests.rig.ports import free_port
from tests.rig.working import OpenWorking, WorkingBoard

LOGIN = {"basic": {"user": "board", "password": "right password"}}
INPUTS = {"to": "{{ payload.to }}", "subject": "{{ payload.subject }}", "text": "{{ result.text }}"}
PAYLOAD = {"to": "Li Wei <li@example.org>", "subject": "回复：发票", "text": "您好，\n.已处理。"}


def mailing(board: WorkingBoard, url: str, **connection: Any) -> None:
    post = {"name": "post", "kind": "mail", "url": url, "sender": "任务板 <board@example.org>"}
    board.apply(connections=[post | connection])
    board.type("write", use="echo", action={"use": "mail", "connection": "post", "inputs": INPUTS})


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(action, "NOT_NOW_SECONDS", 0.05)


def test_one_mail_arrives_as_it_was_meant(working: OpenWorking, mail_server: MailServer) -> None:
    board = working()
    mailing(board, mail_server.url)
    board.submit(type="write", payload=PAYLOAD)
    board.wait("T-1", "done")
    [mail] = mail_server.mails
    parsed = mail.parsed
    assert (mail.sender, mail.recipients) == ("board@example.org", ["li@example.org"])
    assert (parsed["From"], parsed["To"]) == ("任务板 <board@example.org>", "Li Wei <li@example.org>")
    assert parsed["Subject"] == "回复：发票"
    assert parsed.get_content().splitlines() == ["您好，", ".已处理。"]
    assert parsed["Auto-Submitted"] == "auto-generated"
    assert parsed["Date"].datetime.tzinfo is not None
    assert mail.raw.isascii()
    [operation] = board.operations()
    assert (operation["kind"], operation["status"], operation["tries"]) == ("mail", "confirmed", 1)
    assert operation["external_reference"] == parsed["Message-ID"]
    assert operation["external_reference"].endswith("@example.org>")
    assert operation["target"] == f"Mail to li@example.org by 127.0.0.1:{mail_server.port}"
    [delivery] = board.deliveries()
    assert (delivery["outcome"], delivery["detail"]) == ("confirmed", "250 2.0.0 OK: queued as 4711")


@pytest.mark.parametrize(
    ("rcpt", "data"),
    [([], ["451 4.7.1 greylisted"]), (["450 4.2.0 busy"], []), (["cut"], []), ([], ["421 4.3.2 going down"])],
    ids=["451", "450", "cut before the mail", "421"],
)
def test_a_refusal_that_passes_is_tried_again_under_the_same_message_id(
    working: OpenWorking, mail_server: MailServer, rcpt: list[str], data: list[str]
) -> None:
    mail_server.rcpt, mail_server.data = list(rcpt), list(data)
    board = working()
    mailing(board, mail_server.url)
    board.submit(type="write", payload=PAYLOAD)
    board.until(lambda: bool(board.operations()) and board.operations()[0]["body"] is not None)
    composed = board.operations()[0]["body"].encode()
    board.wait("T-1", "done")
    [mail] = mail_server.mails
    assert mail.raw.replace(b"\r\n", b"\n").strip() == composed.replace(b"\r\n", b"\n").strip()
    assert [it["outcome"] for it in board.deliveries()] == ["transient", "confirmed"]
    assert board.task()["retry_count"] == 1


@pytest.mark.parametrize(
    ("rcpt", "data", "words"),
    [(["550 5.1.1 no such user"], [], "550 5.1.1 no such user"), ([], ["554 5.7.1 spam"], "554 5.7.1 spam")],
)
def test_a_refusal_that_stays_fails_with_the_servers_words(
    working: OpenWorking, mail_server: MailServer, rcpt: list[str], data: list[str], words: str
) -> None:
    mail_server.rcpt, mail_server.data = list(rcpt), list(data)
    board = working()
    mailing(board, mail_server.url)
    board.submit(type="write", payload=PAYLOAD)
    task = board.wait("T-1", "failed")
    assert words in task["last_error"]
    assert (task["error_class"], board.operations()[0]["status"]) == ("permanent", "rejected")
    assert mail_server.mails == []


@pytest.mark.parametrize("how", ["lose", "hang"])
def test_a_lost_answer_is_unknown_and_nothing_is_sent_again(
    working: OpenWorking, mail_server: MailServer, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(action, "SECONDS", 2.0)
    mail_server.data = [how]
    board = working()
    mailing(board, mail_server.url)
    board.submit(type="write", payload=PAYLOAD)
    task = board.wait("T-1", "needs_review")
    [mail] = mail_server.mails
    assert mail.parsed["Message-ID"] in task["last_error"]
    assert (board.reviews()[0]["reason"], board.operations()[0]["status"]) == ("unknown_outcome", "unknown")
    board.decide("T-1", "not_happened", reason="The log does not know it.")
    board.wait("T-1", "done")
    first, second = mail_server.mails
    assert first.raw == second.raw


def test_where_a_repeat_does_no_harm_it_is_sent_again(working: OpenWorking, mail_server: MailServer) -> None:
    mail_server.data = ["lose"]
    board = working()
    mailing(board, mail_server.url, idempotent=True)
    board.submit(type="write", payload=PAYLOAD)
    board.wait("T-1", "done")
    first, second = mail_server.mails
    assert first.parsed["Message-ID"] == second.parsed["Message-ID"]


def test_a_server_that_is_not_there_is_tried_again_and_nothing_was_sent(working: OpenWorking) -> None:
    board = working()
    mailing(board, f"smtp+plain://127.0.0.1:{free_port()}")
    board.submit(type="write", payload=PAYLOAD)
    task = board.wait("T-1", "failed", timeout=20)
    assert (task["error_class"], task["error_cause"], task["retry_count"]) == ("transient", "network", 2)
    assert board.operations()[0]["status"] == "rejected"


@pytest.mark.parametrize("scheme", ["smtps", "smtp"])
def test_over_tls_with_a_login(
    working_sqlite: OpenWorking,
    open_mail_server: OpenMailServer,
    certificate: Certificate,
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
) -> None:
    how = {"ssl_context": certificate.context} if scheme == "smtps" else {"tls_context": certificate.context}
    options: dict[str, Any] = {"auth_require_tls": scheme == "smtp", "auth_required": scheme == "smtp"}
    server = open_mail_server(scheme=scheme, **how, **options)
    board = working_sqlite()
    mailing(board, server.url, auth=LOGIN)
    trial = Trial(board.board.catalogue, board.board.handlers, [])

    def looked() -> list[tuple[str, str]]:
        with board.board.db.read() as connection:
            view, users = trial.read(connection, "post")
        return [(it.status, it.message) for it in trial.look(view, users)]

    [(status, message)] = looked()
    assert (status, "certificate" in message.lower()) == ("wrong", True)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.path))
    assert looked() == [("ok", f"127.0.0.1:{server.port} answers and accepts the login. No mail was sent.")]
    board.submit(type="write", payload=PAYLOAD)
    board.wait("T-1", "done")
    [mail] = server.mails
    assert (mail.secure, mail.user) == (True, "board")
    assert "right password" not in board.dump()


def test_a_wrong_password_fails_at_once_and_is_not_told(
    working_sqlite: OpenWorking,
    open_mail_server: OpenMailServer,
    certificate: Certificate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.path))
    server = open_mail_server(scheme="smtps", ssl_context=certificate.context, auth_require_tls=False)
    board = working_sqlite()
    mailing(board, server.url, auth={"basic": {"user": "board", "password": "wrong one"}})
    board.submit(type="write", payload=PAYLOAD)
    task = board.wait("T-1", "failed")
    assert (task["error_cause"], "did not accept the login" in task["last_error"]) == ("auth", True)
    assert "wrong one" not in board.dump()
    assert server.mails == []


def test_without_starttls_no_mail_leaves(working_sqlite: OpenWorking, open_mail_server: OpenMailServer) -> None:
    """Somebody between who takes the offer away gets nothing."""
    server = open_mail_server(scheme="smtp")
    board = working_sqlite()
    mailing(board, server.url, auth=LOGIN)
    board.submit(type="write", payload=PAYLOAD)
    assert "offers no STARTTLS" in board.wait("T-1", "failed")["last_error"]
    assert (server.logins, server.mails) == ([], [])


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("to", "", "inputs.to is empty"),
        ("to", "a@example.org, b@example.org", "no single mail address"),
        ("to", "li@example.org\r\nBcc: all@example.org", "no single mail address"),
        ("to", "nobody", "no single mail address"),
        ("to", 7, "inputs.to is empty"),
        ("subject", "  ", "inputs.subject is empty"),
        ("subject", "x" * 501, "has 501 characters"),
        ("text", "", "inputs.text is empty"),
    ],
)
def test_what_is_no_mail_is_refused_before_anything_is_announced(
    working_sqlite: OpenWorking, mail_server: MailServer, field: str, value: Any, words: str
) -> None:
    board = working_sqlite()
    mailing(board, mail_server.url)
    board.submit(type="write", payload=PAYLOAD | {field: value})
    assert words in board.wait("T-1", "failed")["last_error"]
    assert (board.operations(), mail_server.mails) == ([], [])


def test_a_line_break_in_the_subject_is_no_header(working_sqlite: OpenWorking, mail_server: MailServer) -> None:
    board = working_sqlite()
    mailing(board, mail_server.url)
    board.submit(type="write", payload=PAYLOAD | {"subject": "Hi\r\nBcc: all@example.org"})
    board.wait("T-1", "done")
    [mail] = mail_server.mails
    assert (mail.parsed["Subject"], mail.parsed["Bcc"]) == ("Hi Bcc: all@example.org", None)
    assert mail.recipients == ["li@example.org"]


@pytest.mark.parametrize(
    ("connection", "words"),
    [
        ({"sender": None}, "needs sender"),
        ({"url": "https://mail.example.org"}, "begins with smtps://"),
        ({"url": "smtp://u:p@mail.example.org"}, "without a user name or password"),
        ({"url": "smtp+plain://mail.example.org", "auth": LOGIN}, "a password is not sent over smtp+plain://"),
        ({"auth": {"header": {"X": "y"}}}, "signs in with auth"),
        ({"url": "smtp://169.254.169.254"}, "never called"),
    ],
)
def test_a_wrong_connection_is_refused(working_sqlite: OpenWorking, connection: dict[str, Any], words: str) -> None:
    board = working_sqlite(start=False)
    with pytest.raises(BadCatalogue) as refused:
        mailing(board, connection.pop("url", "smtp://mail.example.org"), **connection)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("use", "inputs", "path"),
    [
        ("mail", {"to": "a@example.org", "subject": "x"}, "inputs.text"),
        ("mail", {**INPUTS, "from": "b@example.org"}, "inputs.from"),
        ("mail", {**INPUTS, "text": "{{ reslut }}"}, "inputs"),
        ("resume", {"to": "x"}, "inputs"),
    ],
)
def test_wrong_inputs_are_refused_with_the_type(
    working_sqlite: OpenWorking, use: str, inputs: dict[str, Any], path: str
) -> None:
    board = working_sqlite(start=False)
    mailing(board, "smtp://mail.example.org")
    connection = {"connection": "post"} if use == "mail" else {}
    with pytest.raises(BadCatalogue) as refused:
        board.type("wrong", use="echo", action={"use": use, "inputs": inputs} | connection)
    assert [where for where, _ in refused.value.problems] == [f"types[0].action.{path}"]
