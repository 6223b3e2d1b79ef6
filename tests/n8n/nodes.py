"""Nodes for flows that tests make themselves, each as the editor would write it."""

from __future__ import annotations

import copy
import json
from typing import Any

KEY = {"httpHeaderAuth": {"id": "", "name": "Board API key"}}


def _node(name: str, kind: str, version: float, parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    kind = f"n8n-nodes-base.{kind}"
    return {
        "name": name,
        "type": kind,
        "typeVersion": version,
        "position": [0, 0],
        "parameters": parameters,
        **more,
    }


def webhook(path: str, mode: str = "onReceived") -> dict[str, Any]:
    """A flow's beginning: POST to /webhook/`path`."""
    parameters = {"httpMethod": "POST", "path": path, "responseMode": mode, "options": {}}
    return _node("Webhook", "webhook", 2, parameters, webhookId=f"hook-{path}")


def http(name: str, method: str, url: str, body: str | None = None, **more: Any) -> dict[str, Any]:
    """An HTTP Request node with the board's key.

    body: an expression without its braces. more: `headers` that are added, the node's own `options`, and whatever
    stands at the node itself, such as `retryOnFail`.
    """
    parameters: dict[str, Any] = {
        "method": method,
        "url": url,
        "authentication": "genericCredentialType",
        "genericAuthType": "httpHeaderAuth",
        "options": more.pop("options", {}),
    }
    if headers := more.pop("headers", None):
        pairs = [{"name": key, "value": value} for key, value in headers.items()]
        parameters |= {"sendHeaders": True, "headerParameters": {"parameters": pairs}}
    if body is not None:
        body = body.replace("}}", "} }")  # two of them would end the expression
        parameters |= {"sendBody": True, "specifyBody": "json", "jsonBody": f"={{{{ {body} }}}}"}
    return _node(name, "httpRequest", 4.2, parameters, **{"credentials": copy.deepcopy(KEY), **more})


def wait(name: str = "Wait", suffix: str = "", **parameters: Any) -> dict[str, Any]:
    """A Wait node that goes on when somebody POSTs to the execution's address."""
    options = {"webhookSuffix": suffix} if suffix else {}
    own = {"resume": "webhook", "httpMethod": "POST", "options": options}
    return _node(name, "wait", 1.1, own | parameters, webhookId=f"wait-{name}")


def pause(seconds: int) -> dict[str, Any]:
    """A short wait of the clock: n8n keeps the execution running meanwhile."""
    return _node("Pause", "wait", 1.1, {"resume": "timeInterval", "amount": seconds, "unit": "seconds"})


def end(name: str = "End") -> dict[str, Any]:
    return _node(name, "noOp", 1, {})


def split(field: str = "data") -> dict[str, Any]:
    return _node("Split Out", "splitOut", 1, {"fieldToSplitOut": field, "options": {}})


def items(*values: dict[str, Any]) -> dict[str, Any]:
    """A Code node that gives these items."""
    code = f"return {json.dumps([{'json': value} for value in values])};"
    return _node("Items", "code", 2, {"jsCode": code})
