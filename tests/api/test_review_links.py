"""Links to reviews over HTTP: who may make them, what is told of them, and that they can be withdrawn."""

from collections.abc import Iterator

import httpx2
import pytest

from board.access import keys, users
from board.app import build_app
from tests.rig.asgi import serve
from tests.rig.board import API_KEY, api
from tests.rig.working import OpenWorking, WorkingBoard


@pytest.fixture
def board(working_sqlite: OpenWorking) -> WorkingBoard:
    board = working_sqlite(bootstrap_api_key=API_KEY)
    board.type("letter", "none")
    board.submit("T-1", "letter")
    board.wait("T-1", "needs_review")
    with board.board.db.write() as tx:
        users.add(tx, "li@example.org", "reviewer")
        users.add(tx, "view@example.org", "viewer")
    return board


@pytest.fixture
def url(board: WorkingBoard) -> Iterator[str]:
    with serve(build_app(board.board)) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[httpx2.Client]:
    with api(url) as client:
        yield client


def test_made_listed_and_withdrawn(board: WorkingBoard, client: httpx2.Client, url: str) -> None:
    review = board.reviews()[-1]["id"]
    made = client.post(f"/reviews/{review}/links", json={"user": "Li@example.org"})
    assert made.status_code == 201
    body = made.json()
    assert set(body) == {"id", "review_id", "user", "url", "expires_at"}
    assert (body["review_id"], body["user"]) == (str(review), "li@example.org")
    path = body["url"].removeprefix("http://127.0.0.1:8000")
    page = httpx2.get(f"{url}{path}")
    assert page.status_code == 200
    listed = client.get(f"/reviews/{review}/links")
    [link] = listed.json()["data"]
    assert (link["id"], link["purpose"], link["revoked_at"]) == (body["id"], "api", None)
    assert link["opened_at"] is not None
    assert path.rpartition("/")[2] not in listed.text
    for _ in range(2):
        assert client.delete(f"/reviews/{review}/links/{body['id']}").json() == {"id": body["id"], "revoked": True}
    assert httpx2.get(f"{url}{path}").status_code == 410
    event = next(event for event in client.get("/tasks/T-1/events").json()["data"] if event["kind"] == "link_made")
    assert event["actor"] == {"kind": "key", "name": "bootstrap"}


def test_what_is_refused(board: WorkingBoard, client: httpx2.Client) -> None:
    review = board.reviews()[-1]["id"]
    for path, body, status, code in (
        (f"/reviews/{review}/links", {"user": "nobody@example.org"}, 422, "unknown_user"),
        (f"/reviews/{review}/links", {"user": "view@example.org"}, 403, "not_eligible"),
        (f"/reviews/{review}/links", {}, 422, "invalid_field"),
        (f"/reviews/{review}/links", {"user": "li@example.org", "x": 1}, 422, "unknown_field"),
        ("/reviews/987654/links", {"user": "li@example.org"}, 404, "not_found"),
        ("/reviews/x/links", {"user": "li@example.org"}, 404, "not_found"),
    ):
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (status, code), (path, body)
    assert client.get("/reviews/987654/links").status_code == 404
    assert client.delete(f"/reviews/{review}/links/987654").status_code == 404
    assert client.delete(f"/reviews/{review}/links/x").status_code == 404
    board.cancel("T-1")
    late = client.post(f"/reviews/{review}/links", json={"user": "li@example.org"})
    assert (late.status_code, late.json()["code"]) == (409, "already_decided")


def test_a_link_gives_a_persons_voice_so_only_admins_make_one(board: WorkingBoard, url: str) -> None:
    review = board.reviews()[-1]["id"]
    with board.board.db.write() as tx:
        reviewer, reader = keys.create(tx, "r", ["review"]), keys.create(tx, "d", ["read"])
    with api(url, key=reviewer) as client:
        assert client.post(f"/reviews/{review}/links", json={"user": "li@example.org"}).status_code == 403
        assert client.get(f"/reviews/{review}/links").json()["data"] == []
    with api(url, key=reader) as client:
        assert client.get(f"/reviews/{review}/links").status_code == 403
