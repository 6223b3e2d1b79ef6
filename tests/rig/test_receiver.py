"""The receiver answers as it is told, and records what really came over the wire."""

import httpx2
import pytest

from tests.rig.receiver import Receiver, Reply


@pytest.fixture
def client() -> httpx2.Client:
    return httpx2.Client(trust_env=False, timeout=5)


def test_records_the_request_as_it_came(receiver: Receiver, client: httpx2.Client) -> None:
    body = '{"name":  "线索"}'.encode()
    assert client.post(f"{receiver.url}/hook?a=1", content=body, headers={"X-Token": "t"}).status_code == 200
    [request] = receiver.wait_for(1)
    assert (request.method, request.path, request.body) == ("POST", "/hook?a=1", body)
    assert request.headers["x-token"] == "t"


def test_answers_in_order_then_the_default(receiver: Receiver, client: httpx2.Client) -> None:
    receiver.default = Reply(status=410)
    receiver.reply(Reply(status=503, headers={"Retry-After": "7"}), Reply(body=b"[1]"))
    first, second, third = (client.post(receiver.url) for _ in range(3))
    assert (first.status_code, first.headers["retry-after"]) == (503, "7")
    assert (second.status_code, second.json()) == (200, [1])
    assert third.status_code == 410


def test_loses_answers(receiver: Receiver, client: httpx2.Client) -> None:
    receiver.reply(Reply(close=True), Reply(hang=True), Reply(delay=5))
    with pytest.raises(httpx2.RemoteProtocolError):
        client.post(receiver.url)
    for _ in range(2):
        with pytest.raises(httpx2.ReadTimeout):
            client.post(receiver.url, timeout=0.2)
    assert len(receiver.wait_for(3)) == 3


def test_says_what_came_when_too_little_came(receiver: Receiver, client: httpx2.Client) -> None:
    client.get(f"{receiver.url}/only")
    with pytest.raises(AssertionError, match=r"1 of 2 requests came in 0.1 s: \['GET /only'\]"):
        receiver.wait_for(2, timeout=0.1)
