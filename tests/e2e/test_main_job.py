"""The main job from end to end, through HTTP and real processes only.

n8n puts an inquiry in, a workflow app of Dify judges it, a person decides in the web inbox, n8n is called once.
"""

import base64
import hashlib
import hmac
import http.client
import json
import re
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.rig.board import BoardProcess, RunBoard, StartBoard, api
from tests.rig.receiver import Received, Receiver
from tests.rig.standin import RunningStandin

OWNER, PASSWORD = "owner@example.org", "a long enough password"
ACTION_SECRET = "whsec_" + base64.b64encode(b"what the connection signs with").decode()
CALLBACK_SECRET = "whsec_" + base64.b64encode(b"what the board signs with").decode()
RESUME_SIGNATURE = "5d" * 32  # n8n's resume addresses carry their right in the query
WORK = """
connections:
  - {name: leads, kind: dify, url: "${DIFY_URL}", key: app-demo-leads}
  - {name: n8n, kind: webhook, url: "${N8N_URL}/webhook/leads", secret: "${N8N_SECRET}"}
types:
  - name: lead.qualify
    title: Qualify a lead
    task_id: "{{ source }}:{{ payload.external_id }}"
    handler:
      use: dify.workflow
      connection: leads
      inputs: {text: "{{ payload.message }}"}
      output_schema: {type: object, required: [label, summary]}
      judgement: {summary: summary, advice: advice, confidence: confidence, reasons: reasons, risks: risks}
    review: {when: always, grace: 0s}
    action: {use: webhook, connection: n8n}
"""


@dataclass(frozen=True)
class Arrangement:
    """The processes of one board. front: the one that answers HTTP; env: what all of them and the commands need."""

    front: BoardProcess
    processes: list[BoardProcess]
    env: Mapping[str, str]


@pytest.fixture(params=["up on SQLite", "api and worker on PostgreSQL"])
def board(request: pytest.FixtureRequest, board_process: StartBoard, tmp_path: Path) -> Arrangement:
    env = {"BOARD_WEBHOOK_SECRET": CALLBACK_SECRET, "BOARD_ALLOW_PRIVATE_TARGETS": "127.0.0.1"}
    if request.param == "up on SQLite":
        front = board_process("up", env=env)
        return Arrangement(front, [front], env)
    env["BOARD_DATABASE_URL"] = request.getfixturevalue("postgres_url")
    front = board_process("api", env=env)
    return Arrangement(front, [front, board_process("worker", env=env)], env)


def as_n8n(url: str, key: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """POST as n8n's HTTP Request node does: one connection per call, header names in lower case."""
    address = urlsplit(url)
    raw = json.dumps(body).encode()
    connection = http.client.HTTPConnection(address.netloc, timeout=60)
    connection.putrequest("POST", address.path, skip_host=True, skip_accept_encoding=True)
    for name, value in (
        ("accept", "application/json,text/html,application/xhtml+xml,application/xml,text/*;q=0.9, image/*;q=0.8"),
        ("content-type", "application/json"),
        ("x-api-key", key),
        ("idempotency-key", "231-0"),
        ("User-Agent", "n8n"),
        ("Content-Length", str(len(raw))),
        ("Accept-Encoding", "gzip, compress, deflate, br"),
        ("Host", address.netloc),
        ("Connection", "close"),
    ):
        connection.putheader(name, value)
    connection.endheaders(raw)
    answer = connection.getresponse()
    assert answer.headers.get_content_type() == "application/json"
    return answer.status, json.loads(answer.read())


def decide_in_the_browser(page: Page, setup_link: str, title: str, action_url: str) -> None:
    """The first owner sets a password by the one-time link, reads what the AI wrote, and approves."""
    page.goto(setup_link)
    page.get_by_label("Mail address").fill(OWNER)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Make owner and sign in").click()
    page.get_by_role("link", name=title).click()
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    expect(page.get_by_role("region", name="Written by AI")).to_contain_text("Call within the hour and send a quote.")
    expect(page.get_by_role("region", name="If you approve")).to_contain_text(action_url)
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Nothing waits")).to_be_visible()


def signed(request: Received, secret: str, body: bytes | None = None) -> bool:
    """Whether both signatures fit, checked as the receivers do it.

    webhook-signature: the steps of the Standard Webhooks specification. x-board-signature: what n8n's Crypto node
    makes of the raw body.
    """
    body = request.body if body is None else body
    headers = request.headers
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{body.decode()}"
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, content.encode(), hashlib.sha256).digest()).decode()
    by_version = [entry.split(",", 1) for entry in headers["webhook-signature"].split(" ")]
    plain = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return ["v1", expected] in by_version and headers["x-board-signature"] == plain


def closed_operations(client: httpx2.Client, task_id: str) -> list[dict[str, Any]]:
    """The task's operations, once the answers of all calls have been noted: that is a moment after they were given."""
    until = time.monotonic() + 15
    while True:
        operations: list[dict[str, Any]] = client.get(f"/tasks/{task_id}/operations").json()["data"]
        if not any(item["status"] in ("reserved", "sent") for item in operations) or time.monotonic() > until:
            return operations
        time.sleep(0.02)


def test_an_inquiry_from_n8n_is_judged_approved_and_handed_back_once(
    board: Arrangement,
    run_board: RunBoard,
    dify_standin: RunningStandin,
    receiver: Receiver,
    page: Page,
    tmp_path: Path,
) -> None:
    # An operator says what kinds of work there are, and makes a key for n8n.
    (tmp_path / "work.yaml").write_text(WORK)
    filled = {**board.env, "DIFY_URL": dify_standin.api_url, "N8N_URL": receiver.url, "N8N_SECRET": ACTION_SECRET}
    applied = run_board("types", "apply", "work.yaml", env=filled)
    assert applied.returncode == 0, applied.stderr
    made = run_board("keys", "create", "n8n", "--scopes", "submit,read", env=board.env)
    assert made.returncode == 0, made.stderr
    key = made.stdout.strip()

    # n8n sends the inquiry, and once more at the same moment: one task.
    inquiry = {
        "type": "lead.qualify",
        "title": "A bakery wants gift boxes",
        "source": "form",
        "payload": {"external_id": "L-1", "message": "Please quote 400 gift boxes, we need them next week."},
        "origin": {"system": "n8n", "workflow_id": "wf1", "execution_id": "231"},
        "callback_url": f"{receiver.url}/webhook-waiting/231?signature={RESUME_SIGNATURE}",
    }
    with ThreadPoolExecutor(2) as both:
        answers = list(both.map(lambda _: as_n8n(f"{board.front.url}/api/v1/tasks", key, inquiry), range(2)))
    assert sorted(status for status, _ in answers) == [200, 201]
    assert {body["task_id"] for _, body in answers} == {"form:L-1"}

    # Dify judges it, and it stops for a person.
    client = api(board.front.url, key)
    task = client.get("/tasks/form:L-1", params={"wait": 30}).json()
    assert (task["status"], task["review"]["reason"]) == ("needs_review", "policy")
    assert task["result"]["label"] == "hot"
    assert task["judgement"]["advice"] == "Call within the hour and send a quote."
    assert receiver.requests == []

    board.front.wait_for_log("/setup/")
    link = re.search(r"http://\S+/setup/\S+", board.front.log)
    assert link is not None
    decide_in_the_browser(page, link[0], inquiry["title"], f"{receiver.url}/webhook/leads")

    # What was approved goes out, then the task is done, then its sender is told.
    task = client.get("/tasks/form:L-1", params={"wait": 30}).json()
    assert (task["status"], task["decision"]["by"]) == ("done", f"user:{OWNER}")
    action, callback = receiver.wait_for(2)
    assert (action.method, action.path) == ("POST", "/webhook/leads")
    assert (callback.method, callback.path) == ("POST", f"/webhook-waiting/231?signature={RESUME_SIGNATURE}")
    for request, secret in ((action, ACTION_SECRET), (callback, CALLBACK_SECRET)):
        assert signed(request, secret)
        assert not signed(request, secret, request.body + b" ")
        assert abs(int(request.headers["webhook-timestamp"]) - time.time()) < 120
        assert request.headers["idempotency-key"] == request.headers["webhook-id"]
    sent, told = json.loads(action.body), json.loads(callback.body)
    assert (sent["event"], sent["task"]["result"]["label"], sent["decision"]["verdict"]) == (
        "task.action",
        "hot",
        "approve",
    )
    assert (told["event"], told["task"]["status"]) == ("task.done", "done")
    assert sent["seq"] < told["seq"]

    # The history tells all of it.
    events = client.get("/tasks/form:L-1/events").json()["data"]
    steps = [(e["kind"], e["from"], e["to"], e["actor"]["kind"], e["channel"], e["attempt"]) for e in events]
    assert steps == [
        ("created", None, "pending", "key", "api", None),
        ("started", "pending", "running", "worker", "worker", 1),
        ("review_asked", "running", "needs_review", "worker", "worker", 1),
        ("approved", "needs_review", "pending", "person", "web", 1),
        ("started", "pending", "running", "worker", "worker", 2),
        ("done", "running", "done", "worker", "worker", 2),
    ]
    assert [events[0]["actor"]["name"], events[3]["actor"]["name"]] == ["n8n", OWNER]
    assert [e["seq"] for e in events] == [1, 2, 3, 4, 5, 6]
    assert [e["at"] for e in events] == sorted(e["at"] for e in events)
    attempts = client.get("/tasks/form:L-1/attempts").json()["data"]
    assert [(a["attempt"], a["phase"], a["outcome"]) for a in attempts] == [
        (1, "work", "needs_review"),
        (2, "act", "succeeded"),
    ]
    operations = closed_operations(client, "form:L-1")
    assert [(o["kind"], o["status"], o["tries"]) for o in operations] == [
        ("dify.run", "confirmed", 1),
        ("webhook.action", "confirmed", 1),
        ("webhook.callback", "confirmed", 1),
    ]

    # Once the processes have ended nothing more can come: each call was made once, and no log holds a secret.
    assert [process.stop() for process in board.processes] == [0 for _ in board.processes]
    assert len(receiver.requests) == 2
    assert httpx2.get(f"{dify_standin.url}/_standin/runs", trust_env=False).json()["started"] == 1
    logs = "".join(process.log for process in board.processes)
    for secret in (key, PASSWORD, RESUME_SIGNATURE, ACTION_SECRET, CALLBACK_SECRET, "app-demo-leads"):
        assert secret not in logs
