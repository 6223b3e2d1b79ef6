"""Who is at work, over HTTP."""

import asyncio

from board.ports import Job, Outcome, Success
from tests.api.conftest import OpenApi
from tests.rig.working import Gate, Probe


def test_a_worker_is_shown_with_what_it_runs(open_api: OpenApi) -> None:
    began = Gate()

    async def work(job: Job) -> Outcome:
        began.open()
        await asyncio.sleep(60)
        return Success()

    api = open_api(Probe(work), work=True)
    api.types({"name": "probe", "handler": {"use": "probe"}, "require_id": False})
    api.submit("T-1", type="probe")
    began.wait()
    [worker] = api.get("/workers").json()["data"]
    assert api.board.consumer is not None
    assert worker["name"] == api.board.consumer.name
    assert (worker["status"], worker["tasks"], worker["running"], worker["slots"]) == ("alive", ["T-1"], 1, 4)
    assert (worker["types"], worker["lanes"], worker["stopped_at"]) == (None, None, None)
    assert worker["version"]
    assert worker["seen_at"].endswith("Z")
    api.board.consumer.stop()
    [worker] = api.get("/workers").json()["data"]
    assert (worker["status"], worker["tasks"], worker["leader"]) == ("stopped", [], False)


def test_reading_is_enough_and_needed(open_api: OpenApi) -> None:
    api = open_api()
    assert api.as_key("read", name="reader").get("/workers").json() == {
        "data": [],
        "next_cursor": None,
        "next_url": None,
    }
    assert api.as_key("submit", name="submitter").get("/workers").status_code == 403
