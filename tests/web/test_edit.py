"""Correcting a payload with a field for each value, and letting the work run again."""

import re

import pytest

from board.ports import Cause, ErrorClass, Failure, Job, Outcome
from board.web import typed
from board.web.forms import Form
from tests.rig.working import OpenWorking, Probe
from tests.web.conftest import Site

SCHEMA = {
    "type": "object",
    "required": ["email"],
    "properties": {
        "email": {"type": "string", "description": "Where the answer goes"},
        "kind": {"enum": ["lead", "spam"]},
        "count": {"type": "integer"},
        "urgent": {"type": "boolean"},
    },
}
LONG = 12345678901234567890123


def test_each_value_gets_the_field_that_fits_it() -> None:
    value = {"kind": "lead", "text": "a\nb", "n": LONG, "on": True, "deep": {"a": [1]}, "nothing": None}
    found = typed.fields(value, SCHEMA)
    assert found is not None
    assert [(it.name, it.kind, it.required, it.absent) for it in found] == [
        ("email", "text", True, True),
        ("kind", "choice", False, False),
        ("count", "number", False, True),
        ("urgent", "truth", False, True),
        ("text", "long", False, False),
        ("n", "number", False, False),
        ("on", "truth", False, False),
        ("deep", "json", False, False),
        ("nothing", "json", False, False),
    ]
    assert found[0].note == "Where the answer goes"
    assert typed.fields({f"k{number}": 1 for number in range(100)}, None) is None


def test_there_and_back_changes_nothing() -> None:
    value = {
        "kind": "lead",
        "text": " a\nb ",
        "n": LONG,
        "x": 1.50,
        "on": False,
        "deep": {"a": ["é", 1]},
        "nothing": None,
    }
    asked = typed.fields(value, SCHEMA)
    assert asked is not None
    form = Form([(typed.PREFIX + field.name, field.shown) for field in asked])
    read, _ = typed.read(form, asked, value)
    assert read == {"email": ""} | value, "what is required is sent empty, and the schema says so"
    assert type(read["n"]) is int


@pytest.mark.parametrize(("name", "given"), [("n", "12x"), ("deep", "{"), ("on", "perhaps"), ("n", "NaN")])
def test_what_cannot_be_read_is_said_at_its_field(name: str, given: str) -> None:
    value = {"n": 1, "deep": {}, "on": True}
    asked = typed.fields(value, None)
    assert asked is not None
    read, seen = typed.read(Form([(typed.PREFIX + name, given)]), asked, value)
    assert name not in read
    assert [(it.name, it.shown) for it in seen if it.problem] == [(name, given)]
    assert read == {other: value[other] for other in value if other != name}, "what was not sent stays"


def test_a_correction_is_shown_first_and_written_then(site: Site) -> None:
    site.review(note="Old", amount=LONG)
    operator = site.visitor("operator")
    page = operator.get("/tasks/T-1/edit").text
    assert 'name="value:note" value="Old"' in page
    version = str(site.working.task()["version"])
    fields = {"version": version, "value:text": "Hello.", "value:note": "New", "value:amount": str(LONG)}
    preview = operator.post("/tasks/T-1/edit", **fields, do="preview")
    assert preview.status_code == 200
    assert "<del>Old</del><ins>New</ins>" in preview.text
    assert site.working.data()["payload"]["note"] == "Old"
    sent = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', preview.text))
    assert operator.post("/tasks/T-1/edit", **sent, do="save").status_code == 303
    assert site.working.data()["payload"] == {"text": "Hello.", "note": "New", "amount": LONG}
    assert site.working.task()["status"] == "needs_review"
    assert site.working.reviews()[-1]["version"] == 2


def test_a_wrong_field_keeps_what_was_typed_and_changes_nothing(site: Site) -> None:
    site.review(amount=1)
    version = str(site.working.task()["version"])
    fields = {"version": version, "value:text": "Kept text", "value:amount": "a lot"}
    answer = site.visitor("operator").post("/tasks/T-1/edit", **fields, do="save")
    assert answer.status_code == 422
    assert "Kept text" in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert site.working.data()["payload"]["amount"] == 1


def test_in_a_review_running_again_is_a_round_of_its_own(site: Site) -> None:
    site.review(note="Old")
    version = str(site.working.task()["version"])
    fields = {"version": version, "value:text": "Hello.", "value:note": "New"}
    answer = site.visitor("operator").post("/tasks/T-1/edit", **fields, do="run")
    assert answer.status_code == 303
    site.working.until(lambda: len(site.working.reviews()) == 2)
    first, second = site.working.reviews()
    assert (first["verdict"], first["instruction"]) == ("revise", "The input was corrected.")
    assert (second["round"], site.working.data()["result"]["note"]) == (2, "New")


def test_what_has_failed_is_corrected_and_run_again(working_sqlite: OpenWorking) -> None:
    async def picky(job: Job) -> Outcome:
        from board.ports import Success

        if job.payload["note"] == "Old":
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, "The note is old.")
        return Success(result={"seen": job.payload["note"]})

    working = working_sqlite(Probe(picky))
    working.type("trial", "probe")
    site = Site(working)
    working.submit("T-1", payload={"note": "Old"})
    working.wait("T-1", "failed")
    version = str(working.task()["version"])
    operator = site.visitor("operator")
    preview = operator.post("/tasks/T-1/edit", **{"version": version, "value:note": "New"}, do="preview").text
    assert "Save and run again" in preview
    answer = operator.post("/tasks/T-1/edit", **{"version": version, "value:note": "New"}, do="run")
    assert answer.status_code == 303
    working.wait("T-1", "done")
    assert working.data()["result"] == {"seen": "New"}


def test_when_no_round_is_left_nothing_is_written(site: Site) -> None:
    site.working.type("judge", "echo", review={"when": "always", "max_rounds": 1})
    site.review(note="Old")
    version = str(site.working.task()["version"])
    answer = site.visitor("operator").post(
        "/tasks/T-1/edit", **{"version": version, "value:text": "Hello.", "value:note": "New"}, do="run"
    )
    assert answer.status_code == 409
    assert "has had all its rounds" in answer.text
    assert site.working.data()["payload"]["note"] == "Old"
