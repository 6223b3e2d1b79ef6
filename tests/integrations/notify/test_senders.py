"""Each chat's sender against a local server that answers as the real one does, its faults included."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from board.effects.http import Door
from board.effects.signing import standard
from board.notices.channels import load_notifiers
from board.ports import ConnectionView, Failure, Message, Success, Told, UnknownOutcome
from integrations.notify import dingtalk, feishu, slack, teams, telegram, wecom
from integrations.notify.texts import cut, in_bytes, in_utf16, is_public
from tests.rig.ports import free_port
from tests.rig.receiver import Receiver, Reply

CHATS = ("feishu", "dingtalk", "wecom", "slack", "teams", "telegram")
LINK = "https://board.example.org/tasks/T-1"
HOSTILE = '任务失败 <!channel> [here](https://evil.example) <at user_id="all"> **x** & <@U1>\n第二行'
MESSAGE = Message("n-1", "3 tasks failed 失败", HOSTILE, LINK, "Open the task")
LONG = Message("n-2", "长" * 400, "错" * 30_000, LINK, "Open")
GOOD = {
    "feishu": b'{"StatusCode":0,"StatusMessage":"success","code":0,"data":{},"msg":"success"}',
    "dingtalk": b'{"errcode":0,"errmsg":"ok"}',
    "wecom": b'{"errcode":0,"errmsg":"ok"}',
    "slack": b"ok",
    "teams": b"",
    "telegram": b'{"ok":true,"result":{"message_id":17}}',
}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    made = Door(["127.0.0.1/32"])
    yield made
    await made.close()


def connection(kind: str, url: str, **secrets: Any) -> ConnectionView:
    key = "12:abc" if kind == "telegram" else f"{url}/hook/se-cret?access_token=se-cret"
    return ConnectionView("team", kind, url, {"chat": -100, "thread": 4}, {"key": key, **secrets})


async def send(kind: str, door: Door, receiver: Receiver, *replies: Reply, **secrets: Any) -> Told:
    receiver.reply(*replies)
    return await load_notifiers("x" * 24)[kind].send(connection(kind, receiver.url, **secrets), MESSAGE, door)


def said(kind: str, body: dict[str, Any]) -> Reply:
    return Reply(body=json.dumps(body).encode())


@pytest.mark.parametrize("kind", CHATS)
async def test_a_message_arrives_with_its_title_text_and_link(kind: str, door: Door, receiver: Receiver) -> None:
    status = 202 if kind == "teams" else 200
    told = await send(kind, door, receiver, Reply(status=status, body=GOOD[kind]))
    assert isinstance(told, Success)
    [request] = receiver.requests
    assert request.headers["content-type"].startswith("application/json")
    text = request.body.decode()
    json.loads(text)
    assert "3 tasks failed 失败" in text
    assert "第二行" in text
    assert LINK in text
    assert told.reference == {"teams": "accepted", "telegram": "17"}.get(kind)


@pytest.mark.parametrize(
    ("kind", "body", "error_class", "wait"),
    [
        ("feishu", {"code": 11232, "msg": "frequency limited psm[lark.oapi]"}, "quota", 60),
        ("feishu", {"code": 19021, "msg": "sign match fail or timestamp is not within one hour"}, "permanent", None),
        ("feishu", {"code": 19024, "msg": "Key Words Not Found"}, "permanent", None),
        ("feishu", {"code": 9499, "msg": "Bad Request"}, "permanent", None),
        ("dingtalk", {"errcode": 310000, "errmsg": "sign not match"}, "permanent", None),
        ("dingtalk", {"errcode": 130101, "errmsg": "send too fast"}, "quota", 600),
        ("dingtalk", {"status": 1111, "wait": 5, "punish": "deny"}, "quota", 600),
        ("dingtalk", {"errcode": 300001, "errmsg": "token is not exist"}, "permanent", None),
        ("wecom", {"errcode": 45009, "errmsg": "api freq out of limit"}, "quota", 60),
        ("wecom", {"errcode": 93000, "errmsg": "invalid webhook url"}, "permanent", None),
        ("wecom", {"errcode": 40058, "errmsg": "markdown.content exceed max length 4096"}, "permanent", None),
        ("feishu", {"hello": "I am a proxy"}, "permanent", None),
        ("wecom", {}, "permanent", None),
        ("slack", {"ok": True}, "permanent", None),
    ],
)
async def test_http_200_with_an_error_in_the_body_is_a_failure(
    kind: str, body: dict[str, Any], error_class: str, wait: float | None, door: Door, receiver: Receiver
) -> None:
    told = await send(kind, door, receiver, said(kind, body))
    assert isinstance(told, Failure)
    assert (told.error_class, told.retry_after) == (error_class, wait)
    assert "se-cret" not in told.message


@pytest.mark.parametrize(
    ("kind", "status", "body", "headers", "error_class", "wait"),
    [
        ("slack", 429, "", {"Retry-After": "30"}, "quota", 30),
        ("slack", 404, "no_service", {}, "permanent", None),
        ("slack", 410, "channel_is_archived", {}, "permanent", None),
        ("slack", 400, "invalid_blocks", {}, "permanent", None),
        ("slack", 500, "rollup_error", {}, "transient", None),
        ("teams", 429, "", {"Retry-After": "7"}, "quota", 7),
        ("teams", 401, "", {}, "permanent", None),
        ("feishu", 502, "<html>", {}, "transient", None),
        ("dingtalk", 302, "", {"Location": "https://evil.example"}, "permanent", None),
        ("telegram", 429, '{"ok":false,"error_code":429,"parameters":{"retry_after":9}}', {}, "quota", 9),
        ("telegram", 401, '{"ok":false,"error_code":401,"description":"Unauthorized"}', {}, "permanent", None),
        ("telegram", 502, '{"ok":false,"error_code":502,"description":"Bad Gateway"}', {}, "transient", None),
        ("telegram", 502, "<html>", {}, "transient", None),
    ],
)
async def test_what_the_http_status_says(
    kind: str, status: int, body: str, headers: dict[str, str], error_class: str, wait: float | None,
    door: Door, receiver: Receiver,
) -> None:  # fmt: skip
    told = await send(kind, door, receiver, Reply(status, body.encode(), headers))
    assert isinstance(told, Failure)
    assert (told.error_class, told.retry_after) == (error_class, wait)
    assert "se-cret" not in told.message
    assert len(receiver.requests) == 1


async def test_a_group_that_moved_is_named(door: Door, receiver: Receiver) -> None:
    moved = b'{"ok":false,"error_code":400,"description":"moved","parameters":{"migrate_to_chat_id":-1009}}'
    told = await send("telegram", door, receiver, Reply(400, moved))
    assert isinstance(told, Failure)
    assert "set its `chat` to -1009" in told.message


@pytest.mark.parametrize("kind", CHATS)
async def test_a_lost_answer_is_unknown_and_a_closed_door_is_not(kind: str, door: Door, receiver: Receiver) -> None:
    assert isinstance(await send(kind, door, receiver, Reply(close=True)), UnknownOutcome)
    nobody = connection(kind, f"http://127.0.0.1:{free_port()}")
    told = await load_notifiers("x" * 24)[kind].send(nobody, MESSAGE, door)
    assert isinstance(told, Failure)
    assert told.error_class == "transient"


def test_signatures_fit_the_vendors_vectors() -> None:
    assert feishu.sign("demo", 1599360473) == "l1N0gAcBjdwBvGm1xMjOF0XSyaLRpR7tuO5dHfhAYc8="
    assert dingtalk.sign("demo", 1599360473000) == "eblRZvilBzXa6Ce18IeBM4pMy1rYNWKicaCg6VMwQe0="


async def test_signatures_are_where_each_wants_them(door: Door, receiver: Receiver) -> None:
    await send("feishu", door, receiver, Reply(body=GOOD["feishu"]), secret="demo")
    body = json.loads(receiver.requests[0].body)
    assert body["sign"] == feishu.sign("demo", int(body["timestamp"]))
    await send("dingtalk", door, receiver, Reply(body=GOOD["dingtalk"]), secret="demo")
    query = parse_qs(urlsplit(receiver.requests[1].path).query)  # decoded once, as DingTalk does
    assert query["sign"] == [dingtalk.sign("demo", int(query["timestamp"][0]))]
    assert query["access_token"] == ["se-cret"]


def test_limits_are_kept_whatever_the_length() -> None:
    assert in_bytes(json.dumps(feishu.body(LONG, "demo", 1), ensure_ascii=False)) <= 20_000
    assert in_bytes(json.dumps(dingtalk.body(LONG), ensure_ascii=False)) <= 20_000
    assert 4000 <= in_bytes(wecom.body(LONG)["markdown"]["content"]) <= 4096
    assert in_bytes(json.dumps(teams.body(LONG), ensure_ascii=False)) <= 20_000
    blocks = slack.body(LONG)["blocks"]
    assert (len(blocks[0]["text"]["text"]), len(blocks[1]["text"]["text"])) == (150, 3000)
    emoji = Message("n", "t", "😀" * 5000, LINK, "Open")
    assert 3900 <= in_utf16(telegram.body(emoji, {"chat": 1})["text"]) <= 4096


def test_what_strangers_wrote_is_no_markup_and_calls_nobody() -> None:
    for made in (dingtalk.body(MESSAGE)["actionCard"]["text"], wecom.body(MESSAGE)["markdown"]["content"]):
        assert "](https://evil" not in made
        assert "<" not in made
    assert all(it["text"]["type"] == "plain_text" for it in slack.body(MESSAGE)["blocks"][:2])
    hostile_title = Message("n", "<!channel>", "x", LINK, "Open")
    assert slack.body(hostile_title)["text"] == "&lt;!channel&gt;"
    assert "&lt;!channel&gt;" in telegram.body(MESSAGE, {"chat": 1})["text"]
    elements = feishu.body(MESSAGE, None, 1)["card"]["body"]["elements"]
    assert elements[0]["text"]["tag"] == "plain_text"
    assert teams.body(MESSAGE)["attachments"][0]["content"]["body"][1]["type"] == "RichTextBlock"


def test_a_link_that_nobody_can_reach_stands_in_the_text_of_telegram() -> None:
    local = Message("n", "t", "x", "http://127.0.0.1:8000/tasks/T", "Open")
    made = telegram.body(local, {"chat": 1})
    assert "reply_markup" not in made
    assert "http://127.0.0.1:8000/tasks/T" in made["text"]
    assert not is_public("http://board.local/")
    assert is_public(LINK)


def test_a_text_is_cut_between_characters() -> None:
    assert cut("错错错", 7, in_bytes) == "错…"
    assert cut("错错", 6, in_bytes) == "错错"


async def test_a_webhook_is_signed_and_bears_the_data(door: Door, receiver: Receiver) -> None:
    message = Message("n-1", "t", "x", LINK, "Open", event="queue.alert", data={"rule": "depth"})
    hook = ConnectionView("hook", "webhook", receiver.url, {}, {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
    notifier = load_notifiers("x" * 24)["webhook"]
    assert isinstance(await notifier.send(hook, message, door), Success)
    receiver.reply(Reply(429, headers={"Retry-After": "5"}), Reply(410), Reply(503))
    classes = [getattr(await notifier.send(hook, message, door), "error_class", None) for _ in range(3)]
    assert classes == ["quota", "permanent", "transient"]
    first, *_ = receiver.requests
    told = {"event": "queue.alert", "title": "t", "text": "x", "url": LINK, "data": {"rule": "depth"}}
    assert json.loads(first.body) == told
    signed = standard(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        first.headers["webhook-id"],
        first.headers["webhook-timestamp"],
        first.body,
    )
    assert first.headers["webhook-signature"] == signed
    assert len({it.headers["webhook-id"] for it in receiver.requests}) == 1
