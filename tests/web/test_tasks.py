"""The table of tasks and the page of one task."""

import json
from typing import Any

import pytest

from board.ports import Cause, ErrorClass, Failure, Job, Outcome
from board.queue import live
from board.worker.presence import Entry, Presence
from tests.rig.receiver import Receiver, Reply
from tests.rig.working import OpenWorking, Probe
from tests.web.conftest import Site, Visitor


@pytest.fixture
def operator(site: Site) -> Visitor:
    return site.visitor("operator")


def listed(page: str) -> list[str]:
    import re

    return re.findall(r'name="task" value="([^"]+)"', page)


def test_filters_sorting_and_pages(site: Site, operator: Visitor) -> None:
    site.working.stop()
    for number in range(60):
        site.working.submit(f"T-{number:02}", "judge", title=f"Row {number}", priority="P1" if number % 2 else "P3")
    site.working.submit("T-x", "judge", title="标签任务", tags=["vip", "a&b"], source="form")
    first = operator.get("/tasks?sort=task_id").text
    assert listed(first) == [f"T-{number:02}" for number in range(50)]
    assert 'rel="next"' in first
    following = first.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")
    assert listed(operator.get(following).text) == [f"T-{number:02}" for number in range(50, 60)] + ["T-x"]
    assert listed(operator.get("/tasks?q=标签").text) == ["T-x"]
    assert listed(operator.get("/tasks?tag=a%26b&source=form").text) == ["T-x"]
    assert len(listed(operator.get("/tasks?priority=P1&status=pending").text)) == 30
    assert "No task fits these filters" in operator.get("/tasks?status=failed").text
    assert operator.get("/tasks?status=bogus&sort=bogus&priority=P9").status_code == 200


def test_one_and_several_are_cancelled_and_put_back(site: Site, operator: Visitor) -> None:
    for number in range(3):
        site.review(f"T-{number}")
    answer = operator.post("/tasks/act", do="cancel:T-0", next="/tasks?status=needs_review")
    assert answer.headers["location"] == "/tasks?status=needs_review"
    assert "1 task was cancelled" in operator.get("/tasks").text
    body: Any = {"csrf": operator.csrf, "do": "cancel", "task": ["T-0", "T-1", "T-2"], "next": "/tasks"}
    operator.client.post("/tasks/act", data=body)
    note = operator.get("/tasks").text
    assert "2 tasks were cancelled" in note
    assert "1 task could not be cancelled" in note
    assert "cancelled or asked" not in operator.get("/tasks").text, "said once"
    operator.post("/tasks/act", do="requeue:T-1", next="/tasks")
    site.working.wait("T-1", "needs_review")
    operator.post("/tasks/act", do="cancel", next="/tasks")
    assert "Select at least one task first." in operator.get("/tasks").text
    events = site.working.events("T-1")
    assert [event["channel"] for event in events if event["kind"] in ("cancelled", "requeued")] == ["web", "web"]


def test_a_task_with_an_odd_id_has_its_page(site: Site, operator: Visitor) -> None:
    task_id = "a:b &\"<i>' +é中"
    site.review(task_id)
    page = operator.get("/tasks").text
    path = page.split('class="what"><a href="', 1)[1].split('"')[0]
    answer = operator.get(path)
    assert answer.status_code == 200
    assert "<i>" not in answer.text
    assert operator.post(f"{path}/cancel", reason="<b>no</b>").status_code == 303
    assert site.working.task(task_id)["status"] == "cancelled"
    assert "&lt;b&gt;no&lt;/b&gt;" in operator.get(path).text


def test_the_payload_is_edited_only_whole_and_valid(site: Site, operator: Visitor) -> None:
    review = site.review()
    version = str(site.working.task()["version"])
    for typed, words in (("{oops", "This is not JSON"), ("[1]", "JSON object"), ('{"a": NaN}', "not a number")):
        answer = operator.post("/tasks/T-1/edit", version=version, payload=typed)
        assert answer.status_code == 422
        assert words in answer.text
        assert typed.replace('"', "&#34;") in answer.text
    answer = operator.post("/tasks/T-1/edit", version="1", payload='{"text": "x"}')
    assert answer.status_code == 409
    assert operator.post("/tasks/T-1/edit", version=version, payload='{"text": "新"}').status_code == 303
    assert site.working.data()["payload"] == {"text": "新"}
    assert "The payload was saved." in operator.get(f"/reviews/{review}").text
    site.visitor("reviewer").decide(review, "reject", reason_class="other")
    assert "can be changed only while" in operator.get("/tasks/T-1/edit").text


def test_data_is_downloaded_whole(site: Site, operator: Visitor) -> None:
    site.review(big=2**80)
    answer = operator.get("/tasks/T-1/data.json")
    assert json.loads(answer.text)["payload"]["big"] == 2**80
    assert answer.headers["content-disposition"].startswith("attachment")


def test_a_failing_task_shows_cause_count_next_time_and_error(working_sqlite: OpenWorking) -> None:
    async def fail(job: Job) -> Outcome:
        return Failure(ErrorClass.TRANSIENT, Cause.UPSTREAM_5XX, "The gateway said <b>502</b>.")

    working = working_sqlite(Probe(fail))
    working.type(retry={"max": 5, "base": "1h", "cap": "2h"})
    working.submit()
    working.wait("T-1", "retrying")
    operator = Site(working).visitor("operator")
    page = operator.get("/tasks/T-1").text
    for words in ("Error of the other side (5xx)", "1 of 5", "&lt;b&gt;502&lt;/b&gt;", "Run now", "Next try"):
        assert words in page
    before = len(working.attempts())
    assert operator.post("/tasks/T-1/run-now").status_code == 303
    working.until(lambda: len(working.attempts()) > before)
    working.wait("T-1", "retrying")
    answer = operator.post("/tasks/T-1/requeue")
    assert answer.status_code == 409
    assert "in the state “Retrying”" in answer.text


def test_a_failure_is_acknowledged_on_its_page_or_together_with_others(working_sqlite: OpenWorking) -> None:
    async def fail(job: Job) -> Outcome:
        return Failure(ErrorClass.PERMANENT, Cause.AUTH, "Wrong key.")

    working = working_sqlite(Probe(fail))
    working.type()
    for number in range(3):
        working.submit(f"T-{number}")
        working.wait(f"T-{number}", "failed")
    site = Site(working)
    operator = site.visitor("operator")
    assert "Acknowledge this failure" in operator.get("/tasks/T-0").text
    assert "Acknowledge this failure" not in site.visitor("reviewer").get("/tasks/T-0").text
    assert site.visitor("reviewer").post("/tasks/T-0/acknowledge").status_code == 403
    assert operator.post("/tasks/T-0/acknowledge", reason="Known.").status_code == 303
    page = operator.get("/tasks/T-0").text
    assert "The failure of 1 task was acknowledged." in page
    assert "The failure was acknowledged" in page
    assert "Acknowledge this failure" not in page
    body: Any = {"csrf": operator.csrf, "do": "acknowledge", "task": ["T-1", "T-2"], "next": "/tasks"}
    operator.client.post("/tasks/act", data=body)
    assert "The failures of 2 tasks were acknowledged." in operator.get("/tasks").text
    assert [working.events(f"T-{number}")[-1]["note"] for number in range(3)] == ["Known.", None, None]


@pytest.mark.parametrize(("lang", "words"), [("en", "was archived on"), ("zh-CN", "归档")])
def test_the_page_of_an_archived_task_says_where_it_is(site: Site, lang: str, words: str) -> None:
    site.working.submit("T-1", "judge")
    site.working.wait("T-1", "needs_review")
    site.working.cancel("T-1")
    site.working.at(31 * 86_400)
    site.working.board.archive.run()
    answer = site.visitor("operator", lang=lang).get("/tasks/T-1")
    assert answer.status_code == 410
    assert words in answer.text
    assert "archive/" in answer.text


def test_the_log_of_calls_and_sending_one_again(site: Site, operator: Visitor, receiver: Receiver) -> None:
    """What came back is hostile text; its address is masked; who may not operate sees no button."""
    receiver.reply(Reply(status=404, body=b"<script>alert(1)</script>"))
    board = site.working
    board.type("echo", "echo")
    board.submit("T-1", "echo", callback_url=f"{receiver.url}/hook?token=s3cret")
    board.until(lambda: bool(board.deliveries()))
    page = operator.get("/tasks/T-1").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "s3cret" not in page
    assert "Send again" in page
    assert "Send again" not in site.visitor("viewer").get("/tasks/T-1").text
    operation = str(board.operations()[0]["id"])
    assert site.visitor("viewer").post("/tasks/T-1/resend", operation=operation).status_code == 403
    answer = operator.post("/tasks/T-1/resend", operation=operation)
    assert (answer.status_code, answer.headers["location"]) == (303, "/tasks/T-1")
    receiver.wait_for(2)
    assert "The call goes out again now." in operator.get("/tasks/T-1").text
    board.until(lambda: board.operations()[0]["status"] == "confirmed")
    chinese = site.visitor("operator", "wang", "zh-CN").get("/tasks/T-1").text
    assert "回调已再次发送" in chinese
    assert "返回内容（2 次尝试）" in chinese
    assert operator.post("/tasks/T-1/resend", operation="999").status_code == 404


@pytest.mark.parametrize(
    ("lang", "said", "start"),
    [("en", "3 tasks of its lane are before it.", "Expected start: "), ("zh-CN", "本通道中有 3 个任务", "预计开始：")],
)
def test_a_waiting_task_says_why(site: Site, lang: str, said: str, start: str) -> None:
    db = site.working.board.db
    site.working.stop()
    busy = Presence(db, Entry("busy", 1, handlers=["echo"]))  # alive, and with no slot free
    busy.enter()
    with db.write() as tx:
        live.change(tx, "user:li", lambda rules: rules.model_copy(update={"paused_types": ["other"]}))
    operator = site.visitor("operator", lang=lang)
    site.working.type("other", "echo")
    site.working.submit("paused", "other")
    site.working.submit("later", "judge", run_after="2099-01-01T00:00:00Z")
    for number in range(4):
        site.working.submit(f"T-{number}", "judge")
    assert said in operator.get("/tasks/T-3").text
    assert start in operator.get("/tasks/later").text
    assert ("paused by a person" if lang == "en" else "人工暂停") in operator.get("/tasks/paused").text
    with db.write() as tx:
        busy.leave(tx)
    assert ("No worker is running." if lang == "en" else "没有正在运行的执行程序。") in operator.get("/tasks/T-3").text
