"""Every field of the format: taken, refused, or refused for now, and always by its path."""

from __future__ import annotations

from typing import Any

import pytest

from board.catalogue.apply import _read
from board.catalogue.connection_spec import ConnectionSpec
from board.catalogue.served import problems_of_connection, problems_of_type
from board.catalogue.spec import TypeSpec
from tests.catalogue.conftest import HANDLERS

KINDS = {"hook": "webhook", "dify-leads": "dify"}
ACTION = {"use": "webhook", "connection": "hook"}


def problems(part: dict[str, Any]) -> dict[str, str]:
    """What is wrong with a type of these parts, by path."""
    found: list[tuple[str, str]] = []
    read = _read(TypeSpec, [{"name": "trial", "handler": {"use": "echo"}} | part], "types", found)
    found = [(path.removeprefix("types[0]").removeprefix("."), message) for path, message in found]
    for _, spec, _ in read:
        found += problems_of_type(spec, HANDLERS, KINDS)
    return dict(found)


@pytest.mark.parametrize(
    "part",
    [
        {"title": "One"},
        {"title": {"en": "One", "zh_CN": "一"}},
        {"title": {"zh_CN": "一"}},
        {"task_id": "{{ source }}:{{ payload.external_id|id_safe }}"},
        {"require_id": True},
        {"priority": "P0"},
        {"priority": "{{ payload.p }}"},
        {"priority": [{"when": "payload.amount > 1000", "use": "P0"}, {"use": "P2"}]},
        {"priority": [{"when": "payload.vip", "use": "P1"}]},
        {"payload_schema": {"type": "object", "required": ["message"]}},
        {"payload_schema": {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}},
        {"handler": {"use": "none"}},
        {"handler": {"use": "outside"}},
        {"handler": {"use": "echo", "inputs": {"text": "{{ payload.message }}", "n": 5}}},
        {"handler": {"use": "echo", "output_schema": {"type": "object"}, "timeout": "90s", "side_effects": True}},
        {"handler": {"use": "echo", "judgement": {"summary": "a", "confidence": "b.c", "risks": "d"}}},
        {"handler": {"use": "echo", "wait": "stream"}},
        {"handler": {"use": "dify.workflow", "connection": "dify-leads"}},
        {"retry": {"max": 0, "base": "500ms", "cap": "1h", "on_permanent": "needs_review"}},
        {
            "retry": {
                "rules": [{"when": {"status": 429}, "class": "quota"}, {"when": {"code": "x"}, "class": "permanent"}]
            }
        },
        {"review": {"when": "always"}},
        {"review": {"when": "never", "risk": "high", "max_rounds": 2, "grace": "0s"}},
        {"review": {"when": "rules", "rules": [{"confidence_below": 0.8}, {"risks": "any"}, {"output": "a == 'b'"}]}},
        {"action": ACTION},
        {"action": ACTION | {"operation_key": "publish:{{ payload.post_id }}:v1"}},
        {"callback": {"events": ["done", "needs_review"]}},
        {"callback": {"events": []}},
        {"limits": {"concurrency": 4, "rate": "60/min", "per_day": 5, "order_by": "size"}},
        {"limits": {"concurrency_key": "{{ payload.phone | phone }}", "rate": "1000000/d"}},
        {"max_crashes": 5},
        {"fields": [], "limits": {}, "retention": "30d", "owner": None},
        {"retry": {"base": "10m"}},
        {"retry": {"base": "1s", "cap": "1s"}},
        {"task_id": "{% set id = payload.id %}{{ id }}:{{ source }}:{{ type }}:{{ today }}:{{ title }}"},
        {"task_id": "{{ tags | join('-') }}:{{ range(3) | join }}:{{ callback.url }}:{{ now }}:{{ priority }}"},
        {
            "handler": {
                "use": "echo",
                "inputs": {"a": "{{ review.instruction or attempt }}", "b": ["{{ round }}", "{{ task_id }}"]},
            }
        },
        {
            "action": ACTION
            | {"operation_key": "p:{{ result.id }}:{{ judgement.verdict }}:{{ decision.by }}:{{ round }}"}
        },
        {"retention": "1h"},
        {"retention": "forever"},
    ],
    ids=str,
)
def test_what_is_taken(part: dict[str, Any]) -> None:
    assert problems(part) == {}


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"fields": [{"name": "region", "kind": "choice", "options": ["EU", "CN"]}]}, "fields"),
    ],
    ids=str,
)
def test_what_is_not_served_yet_says_so(part: dict[str, Any], path: str) -> None:
    found = problems(part)
    assert list(found) == [path]
    assert "not yet supported" in found[path]


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"colour": "red"}, "colour"),
        ({"review": {"risk": "huge"}}, "review"),
        ({"review": {"on_expire": "cancel"}}, "review"),
        ({"review": {"due": "0s"}}, "review"),
        ({"review": {"due": "4h", "on_expire": "approve", "approvals": 2}}, "review"),
        ({"review": {"due": "4h", "on_expire": "approve", "risk": "high"}}, "review"),
        ({"review": {"approvals": 0}}, "review.approvals"),
        ({"name": "a b"}, "name"),
        ({"name": ""}, "name"),
        ({"name": "-a"}, "name"),
        ({"name": "x" * 121}, "name"),
        ({"name": 5}, "name"),
        ({"title": 5}, "title"),
        ({"title": {"fr": "x"}}, "title.fr"),
        ({"title": {}}, "title"),
        ({"task_id": "{{ source"}, "task_id"),
        ({"task_id": "{{ source|nope }}"}, "task_id"),
        ({"require_id": "maybe"}, "require_id"),
        ({"priority": "P9"}, "priority"),
        ({"priority": 1}, "priority"),
        ({"priority": "{{ payload.p"}, "priority"),
        ({"priority": "{{ payload.p|nope }}"}, "priority"),
        ({"priority": []}, "priority"),
        ({"priority": [{"use": "P9"}]}, "priority[0].use"),
        ({"priority": [{"when": "payload.a"}]}, "priority[0].use"),
        ({"priority": [{"when": "payload.a >", "use": "P0"}, {"use": "P2"}]}, "priority[0].when"),
        ({"priority": [{"if": "payload.a", "use": "P0"}]}, "priority[0].if"),
        ({"priority": [{"use": "P2"}, {"when": "payload.a", "use": "P0"}]}, "priority"),
        ({"payload_schema": {"type": "objekt"}}, "payload_schema"),
        ({"payload_schema": {"$ref": "https://example.org/schema"}}, "payload_schema"),
        ({"payload_schema": {"$ref": "#/nowhere"}}, "payload_schema"),
        ({"payload_schema": {"pattern": "("}}, "payload_schema"),
        ({"payload_schema": "object"}, "payload_schema"),
        ({"handler": None}, "handler"),
        ({"handler": {}}, "handler.use"),
        ({"handler": {"use": "nope"}}, "handler.use"),
        ({"handler": {"use": "webhook", "connection": "hook"}}, "handler.use"),
        ({"handler": {"use": "echo", "connection": "hook"}}, "handler.connection"),
        ({"handler": {"use": "dify.workflow"}}, "handler.connection"),
        ({"handler": {"use": "dify.workflow", "connection": "nowhere"}}, "handler.connection"),
        ({"handler": {"use": "dify.workflow", "connection": "hook"}}, "handler.connection"),
        ({"handler": {"use": "echo", "size": 256}}, "handler.size"),
        ({"handler": {"use": "echo", "timeout": 90}}, "handler.timeout"),
        ({"handler": {"use": "echo", "timeout": "0s"}}, "handler.timeout"),
        ({"handler": {"use": "echo", "timeout": "-1s"}}, "handler.timeout"),
        ({"handler": {"use": "echo", "timeout": "soon"}}, "handler.timeout"),
        ({"handler": {"use": "echo", "inputs": {"a": ["{{ x"]}}}, "handler.inputs"),
        ({"handler": {"use": "echo", "output_schema": {"type": 5}}}, "handler.output_schema"),
        ({"handler": {"use": "echo", "judgement": {"mood": "x"}}}, "handler.judgement.mood"),
        ({"handler": {"use": "echo", "wait": "for ever"}}, "handler.wait"),
        ({"retry": {"max": -1}}, "retry.max"),
        ({"retry": {"max": 101}}, "retry.max"),
        ({"retry": {"base": 5}}, "retry.base"),
        ({"retry": {"base": "11m"}}, "retry.base"),
        ({"retry": {"base": "2s", "cap": "1s"}}, "retry.base"),
        ({"task_id": "{{ sourcce }}:{{ payload.id }}"}, "task_id"),
        ({"task_id": "{{ payload.id }}:{{ round }}"}, "task_id"),
        ({"task_id": "{{ task_id }}"}, "task_id"),
        ({"priority": "{{ priority }}"}, "priority"),
        ({"priority": [{"when": "paylod.amount > 1", "use": "P0"}]}, "priority[0].when"),
        ({"handler": {"use": "echo", "inputs": {"a": ["{{ payload.a }} {{ paylod.b }}"]}}}, "handler.inputs"),
        ({"action": ACTION | {"operation_key": "publish:{{ payload.id }}:{{ reslt.x }}"}}, "action.operation_key"),
        ({"retry": {"on_permanent": "done"}}, "retry.on_permanent"),
        ({"retry": {"rules": [{"when": {"status": 429}, "class": "odd"}]}}, "retry.rules[0].class"),
        ({"retry": {"rules": [{"class": "quota"}]}}, "retry.rules[0].when"),
        ({"retry": {"rules": [{"when": {"body": "x"}, "class": "quota"}]}}, "retry.rules[0].when.body"),
        ({"limits": {"rate": "often"}}, "limits.rate"),
        ({"limits": {"rate": "0/min"}}, "limits.rate"),
        ({"limits": {"rate": "-5/min"}}, "limits.rate"),
        ({"limits": {"rate": "60/minute"}}, "limits.rate"),
        ({"limits": {"rate": 60}}, "limits.rate"),
        ({"limits": {"concurrency": 0}}, "limits.concurrency"),
        ({"limits": {"concurrency": 1.5}}, "limits.concurrency"),
        ({"limits": {"per_day": -1}}, "limits.per_day"),
        ({"limits": {"concurrency_key": "{{ payload.phone"}}, "limits.concurrency_key"),
        ({"limits": {"concurrency_key": "{{ payload.phone | nope }}"}}, "limits.concurrency_key"),
        ({"limits": {"order_by": "luck"}}, "limits.order_by"),
        ({"limits": {"speed": 4}}, "limits.speed"),
        ({"review": {"when": "often"}}, "review.when"),
        ({"review": {"rules": [{"confidence_below": 2}]}}, "review.rules[0].confidence_below"),
        ({"review": {"rules": [{"risks": "any", "confidence_below": 0.5}]}}, "review.rules[0]"),
        ({"review": {"rules": [{"output": "label =="}]}}, "review.rules[0].output"),
        ({"review": {"sample": 101}}, "review.sample"),
        ({"review": {"grace": "10m"}}, "review.grace"),
        ({"review": {"max_rounds": 0}}, "review.max_rounds"),
        ({"review": {"risk": "{{ x"}}, "review.risk"),
        ({"action": {"use": "webhook"}}, "action.connection"),
        ({"action": {"use": "webhook", "connection": "dify-leads"}}, "action.connection"),
        ({"action": {"use": "nope"}}, "action.use"),
        ({"action": ACTION | {"colour": 1}}, "action.colour"),
        ({"action": ACTION | {"operation_key": "{{ x"}}, "action.operation_key"),
        ({"callback": {"events": ["started"]}}, "callback.events[0]"),
        ({"callback": {"url": "x"}}, "callback.url"),
        ({"max_crashes": 0}, "max_crashes"),
        ({"retention": 30}, "retention"),
        ({"retention": None}, "retention"),
        ({"retention": "never"}, "retention"),
        ({"retention": "59m"}, "retention"),
    ],
    ids=str,
)
def test_what_is_wrong_is_told_by_its_path(part: dict[str, Any], path: str) -> None:
    found = problems(part)
    assert path in found, found
    assert found[path]


@pytest.mark.parametrize("raw", [None, 5, "x", [], [1]], ids=str)
def test_what_is_no_object_at_all(raw: Any) -> None:
    found: list[tuple[str, str]] = []
    assert _read(TypeSpec, [raw], "types", found) == []
    assert found[0][0] == "types[0]"


def connection(part: dict[str, Any]) -> dict[str, str]:
    base = {"name": "hook", "kind": "webhook", "url": "https://n8n.example.org/webhook/x"}
    found: list[tuple[str, str]] = []
    read = _read(ConnectionSpec, [base | part], "connections", found)
    found = [(path.removeprefix("connections[0]").removeprefix("."), message) for path, message in found]
    return dict(found + [problem for _, spec, _ in read for problem in problems_of_connection(spec)])


DIFY = {"kind": "dify", "key": "app-1"}


@pytest.mark.parametrize(
    "part",
    [
        {},
        {"secret": "any text"},
        {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
        {"auth": {"header": {"X-Token": "abc"}}},
        {"auth": {"basic": {"user": "a", "password": "b"}}},
        {"idempotent": True},
        {"url": "http://n8n:5678/webhook/x?y=z"},
        DIFY,
        DIFY | {"grace": "5s", "url": "https://dify.example.org/v1"},
    ],
    ids=str,
)
def test_connections_that_are_taken(part: dict[str, Any]) -> None:
    assert connection(part) == {}


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"name": "a/b"}, "name"),
        ({"kind": "smtp"}, "kind"),
        ({"url": "n8n.example.org"}, "url"),
        ({"url": "file:///etc/passwd"}, "url"),
        ({"url": "https://user:pw@n8n.example.org/x"}, "url"),
        ({"url": "https://n8n.example.org/a b"}, "url"),
        ({"url": None}, "url"),
        ({"key": "app-1"}, ""),
        ({"grace": "5s"}, ""),
        ({"kind": "dify"}, ""),
        (DIFY | {"secret": "x"}, ""),
        ({"secret": "whsec_***"}, "secret"),
        ({"auth": {}}, "auth"),
        ({"secret": ["a", "b", "c"]}, "secret"),
        ({"secret": []}, "secret"),
        ({"secret": ["whsec_YQ==", "whsec_***"]}, "secret"),
        ({"secret": "whsec_YQ==,whsec_"}, "secret"),
        ({"secret": ""}, "secret"),
        ({"auth": {"jwt": {}}}, "auth.jwt.secret"),
        ({"auth": {"jwt": {"secret": ""}}}, "auth.jwt.secret"),
        ({"auth": {"jwt": {"secret": "x", "algorithm": "none"}}}, "auth.jwt.algorithm"),
        ({"auth": {"jwt": {"secret": "x", "claims": {"exp": 1}}}}, "auth.jwt.claims"),
        ({"auth": {"jwt": {"secret": "x"}, "basic": {"user": "n8n"}}}, "auth"),
        ({"url": "http://169.254.169.254/latest"}, "url"),
        ({"url": "http://[fe80::1]/hook"}, "url"),
        ({"url": "http://metadata.google.internal/computeMetadata/v1"}, "url"),
        ({"auth": {"header": {"X Token": "abc"}}}, "auth.header"),
        ({"auth": {"header": {"X-Token": "a\nb: c"}}}, "auth.header"),
        ({"auth": {"header": {"X-Token": 5}}}, "auth.header.X-Token"),
        ({"auth": {"basic": {"password": "b"}}}, "auth.basic.user"),
        ({"auth": {"digest": {}}}, "auth.digest"),
        ({"limits": {"concurrency": 0}}, "limits.concurrency"),
        ({"limits": {"rate": "1/week"}}, "limits.rate"),
        ({"limits": {"concurrency_key": "{{ payload.phone }}"}}, "limits.concurrency_key"),
        ({"limits": {"order_by": "size"}}, "limits.order_by"),
        ({"colour": 1}, "colour"),
    ],
    ids=str,
)
def test_connections_that_are_refused(part: dict[str, Any], path: str) -> None:
    found = connection(part)
    assert path in found, found


@pytest.mark.parametrize(
    ("handler", "known"),
    [
        ({"use": "echo", "wait": "callback"}, "stream"),
        ({"use": "echo", "wait": "blocking"}, "stream"),
        ({"use": "n8n.webhook", "connection": "hook", "wait": "stream"}, "callback, blocking"),
    ],
    ids=str,
)
def test_a_way_to_wait_that_its_handler_does_not_know(handler: dict[str, Any], known: str) -> None:
    message = f"{handler['use']} cannot wait like that; it knows: {known}"
    assert problems({"handler": handler}) == {"handler.wait": message}


@pytest.mark.parametrize("wait", ["callback", "stream", "blocking", None])
def test_the_callback_s_address_is_there_only_where_one_is_waited_for(wait: str | None) -> None:
    handler = {"use": "dify.workflow", "connection": "dify-leads", "inputs": {"to": "{{ callback.url }}"}, "wait": wait}
    found = problems({"handler": handler})
    assert list(found) == ([] if wait == "callback" else ["handler.inputs"])
    n8n = {"use": "n8n.webhook", "connection": "hook", "inputs": {"to": "{{ callback.url }}"}, "wait": wait}
    assert ("handler.inputs" in problems({"handler": n8n})) == (wait in ("stream", "blocking"))
