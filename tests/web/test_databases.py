"""The pages on both databases: what they ask the rooms must hold on each."""

from tests.rig.working import OpenWorking, Probe
from tests.web.conftest import JUDGED, Site, lost


def test_reading_and_deciding(working: OpenWorking) -> None:
    board = working(Probe(lost, name="pay", side_effects=True))
    board.type("judge", "echo", handler={"judgement": JUDGED}, review={"when": "always"})
    site = Site(board)
    reviews = [site.review(f"T-{number}", summary="总结", confidence=0.5 + number / 10) for number in range(3)]
    operator = site.visitor("operator")
    assert operator.get("/pulse").json() == {"waiting": 3, "new": 3, "said": "3 new reviews: show them"}
    assert operator.get(f"/pulse?since={reviews[1]}").json()["new"] == 1
    assert operator.get(f"/pulse?since={reviews[1]}&type=judge").json()["said"] == "1 new review: show it"
    assert operator.get("/pulse?since=0&type=pay").json()["new"] == 0
    assert operator.decide(reviews[0], "approve").headers["location"] == f"/reviews/{reviews[1]}?done={reviews[0]}"
    assert operator.post(f"/reviews/{reviews[0]}/undo").status_code == 303
    assert operator.decide(reviews[1], "revise", instruction="Again").status_code == 303
    assert operator.decide(reviews[2], "reject", reason_class="other").status_code == 303
    board.wait("T-1", "needs_review")
    board.until(lambda: len(board.reviews("T-1")) == 2)
    paths = (
        "/",
        "/decided",
        "/tasks?sort=title",
        "/tasks?q=T-1&status=needs_review",
        "/tasks/T-1",
        f"/reviews/{reviews[2]}",
    )
    assert {path: operator.get(path).status_code for path in paths} == dict.fromkeys(paths, 200)
    assert operator.post("/tasks/act", do="requeue:T-2", next="/tasks").status_code == 303
    board.wait("T-2", "needs_review")


def test_a_language_switch_comes_back_to_a_task_with_an_odd_id(working: OpenWorking) -> None:
    board = working(start=False)
    board.type("direct", "none")
    board.submit("a b+c&d=é:中", "direct")
    visitor = Site(board).visitor("viewer")
    page = visitor.get("/tasks").text
    path = page.split('class="what"><a href="', 1)[1].split('"')[0]
    back = visitor.get(path).text.split('name="next" value="', 1)[1].split('"')[0]
    answer = visitor.post("/language", lang="zh_CN", next=back)
    assert visitor.get(answer.headers["location"]).status_code == 200
