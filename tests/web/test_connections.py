"""The page of connections, and its button that looks whether one works."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integrations.demo.dify_app import create_app
from tests.rig.asgi import serve
from tests.web.conftest import Site


@pytest.fixture(scope="module")
def dify() -> Iterator[str]:
    with serve(create_app()) as base:
        yield f"{base}/v1"


def test_an_owner_tests_a_connection_and_reads_what_was_found(site: Site, dify: str) -> None:
    key = "app-of-nobody-0123456789"
    site.working.apply(
        connections=[
            {"name": "good", "kind": "dify", "url": dify, "key": "app-demo-leads"},
            {"name": "bad", "kind": "dify", "url": dify, "key": key},
            {"name": "hook", "kind": "webhook", "url": "https://n8n.example.org/x"},
        ]
    )
    owner = site.visitor("owner")
    page = owner.get("/settings/connections").text
    assert page.count("Test this connection") == 2
    good = owner.post("/settings/connections/good/test").text
    assert "The key opens the workflow “Leads (Demo stand-in)”" in good
    assert "found-wrong" not in good
    bad = owner.post("/settings/connections/bad/test").text
    assert "check `key` in the settings of the connection “bad”" in bad
    assert key not in bad
    assert owner.post("/settings/connections/nobody/test").status_code == 404


def test_who_may_not_change_connections_may_not_test_them(site: Site, dify: str) -> None:
    site.working.apply(connections=[{"name": "good", "kind": "dify", "url": dify, "key": "app-demo-leads"}])
    operator = site.visitor("operator")
    assert "Test this connection" not in operator.get("/settings/connections").text
    assert operator.post("/settings/connections/good/test").status_code == 403
