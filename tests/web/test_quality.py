"""The page and the call that say how good the suggestions are."""

from board.access import keys
from tests.web.conftest import Site


def test_the_page_shows_each_type_and_how_many_it_is_about(site: Site) -> None:
    first, second = site.review("T-1"), site.review("T-2")
    reviewer = site.visitor("reviewer")
    assert "Nothing was decided about an output of the AI in this time." in reviewer.get("/quality").text
    reviewer.decide(first, "approve")
    reviewer.decide(second, "reject", reason_class="wrong", reason="No.")
    page = reviewer.get("/quality?days=7").text
    assert "Judge" in page
    assert "50%" in page
    assert "1 of 2" in page
    assert "0 approved with changes, 0 sent back, 1 rejected" in page
    assert 'href="/quality"' in reviewer.get("/decided").text
    assert site.stranger().get("/quality").status_code == 303


def test_the_call_gives_the_same_figures(site: Site) -> None:
    site.visitor("reviewer").decide(site.review("T-1"), "approve")
    with site.working.board.db.write() as tx:
        key = keys.create(tx, "reader", ["read"])
    reader = site.stranger().client
    reader.headers["Authorization"] = f"Bearer {key}"
    body = reader.get("/api/v1/reviews/quality?type=judge").json()
    assert [(it["type"], it["decisions"], it["override_rate"]) for it in body["data"]] == [("judge", 1, 0.0)]
    assert body["total"]["decisions"] == 1
    assert reader.get("/api/v1/reviews/quality?to=2020-01-01T00:00:00Z").json()["data"] == []
    answer = reader.get("/api/v1/reviews/quality?from=2030-01-01T00:00:00Z")
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, "from")
