"""The priority of a task: of its body, of its type's value, template or rules; and what gives none is refused."""

from __future__ import annotations

from typing import Any

import pytest

from board.catalogue.spec import TypeSpec
from board.tasks.priority import BadPriority, work_out

RULES = [{"when": "payload.amount > 1000", "use": "P0"}, {"when": "source == 'shop'", "use": "P1"}, {"use": "P3"}]


def of(given: Any, payload: dict[str, Any] | None = None, **seen: Any) -> str:
    spec = TypeSpec.model_validate({"name": "t", "handler": {"use": "echo"}, "priority": given})
    return work_out(spec.priority, {"payload": payload or {}, "source": None, "tags": [], **seen})


@pytest.mark.parametrize(
    ("given", "payload", "priority"),
    [
        ("P1", {}, "P1"),
        ("{{ payload.p }}", {"p": "P0"}, "P0"),
        ("{{ payload.p }}", {"p": " P3 \n"}, "P3"),
        ("{{ payload.p or 'P2' }}", {}, "P2"),
        ("P{{ payload.level }}", {"level": 1}, "P1"),
        ("{% if payload.vip %}\n  P0\n{% else %}\n  P2\n{% endif %}", {"vip": True}, "P0"),
    ],
)
def test_a_value_or_a_template(given: str, payload: dict[str, Any], priority: str) -> None:
    assert of(given, payload) == priority


@pytest.mark.parametrize(
    ("payload", "source", "priority"),
    [
        ({"amount": 1001}, "shop", "P0"),
        ({"amount": 1000}, "shop", "P1"),
        ({"amount": 1}, None, "P3"),
        ({}, "shop", "P1"),  # a rule about a value that is missing does not hold
        ({}, None, "P3"),
    ],
)
def test_of_rules_the_first_that_holds(payload: dict[str, Any], source: str | None, priority: str) -> None:
    assert of(RULES, payload, source=source) == priority


def test_where_no_rule_holds_it_is_routine() -> None:
    assert of(RULES[:1], {"amount": 1}) == "P2"
    assert of([{"when": "payload.a.b.c > 1", "use": "P0"}]) == "P2"


@pytest.mark.parametrize(
    ("given", "payload", "said"),
    [
        ("{{ payload.p }}", {"p": "urgent"}, "came out as “urgent”"),
        ("{{ payload.p }}", {"p": "p1"}, "came out as “p1”"),
        ("{{ payload.p }}", {"p": 1}, "came out as “1”"),
        ("{{ payload.p }}", {"p": ["P0"]}, r"came out as “\['P0'\]”"),
        ("{{ payload.p }}", {}, "came out as nothing"),
        ("{{ payload.p }}", {"p": "x" * 500}, "came out as “x{80}”"),
        ("P{{ payload.n }}", {"n": 4}, "came out as “P4”"),
        ("{{ 1 / payload.n }}", {"n": 0}, "could not be worked out: .*division by zero"),
        (RULES, {"amount": "1500"}, "“payload.amount > 1000” could not be computed"),
    ],
)
def test_what_gives_no_priority_is_told(given: Any, payload: dict[str, Any], said: str) -> None:
    with pytest.raises(BadPriority, match=said):
        of(given, payload)
