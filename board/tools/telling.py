"""The verbs that tell something about a task: add_note, and report_result, which hands in work that was done."""

from __future__ import annotations

from typing import Any

from board.access.rights import Act
from board.api.errors import ApiError
from board.catalogue.shape import first_problem
from board.review import mentions
from board.review.policy import Wish
from board.tasks.ids import BadTaskId, canonical
from board.tasks.ledger import find
from board.tasks.states import Pool
from board.tasks.visible import NoSuchTask, visible
from board.tools import shown
from board.tools.arguments import Argument, Kind
from board.tools.looking import TASK_ID
from board.tools.verb import Call, Reply, Verb
from board.worker.claims import Claimed
from board.worker.handing_out import NotWaiting

LONGEST_NOTE = 10_000
REVIEWS: tuple[Wish, ...] = ("auto", "always", "never")
# Under this name an agent stands in the history as the worker of what it reports.
WORKER = "agent"

_NOTE = Argument("note", "What to write into the history of the task, in plain words.", required=True)
_RESULT = Argument(
    "result", "What came out of the work, with the fields that this type of task asks for.", Kind.VALUE, True
)
_SUMMARY = Argument("summary", "What was found or done, in a sentence or two, for the person who may review it.")
_CONFIDENCE = Argument("confidence", "How sure you are, from 0 to 1, such as 0.8.", Kind.NUMBER)
_RISKS = Argument("risks", "What could be wrong with the result.", Kind.LIST)
_REVIEW = Argument(
    "review",
    "Whether a person should look at it first: always, or as the type says (auto).",
    Kind.CHOICE,
    False,
    REVIEWS,
)


def note(call: Call) -> Reply:
    text = call.given.needed("note").strip()
    if len(text) > LONGEST_NOTE:
        raise _refused("note", f"is longer than {LONGEST_NOTE} characters")
    with call.board.db.write() as tx:
        row = visible(tx, call.actor, call.given.needed("task_id"), Act.OPERATE)
        mentions.comment(tx, row["id"], text, call.actor.by(call.channel))
    message = "The note stands in the history of the task."
    return Reply({"task_id": row["task_id"], "status": row["status"], "message": message})


def report(call: Call) -> Reply:
    board, actor, given = call.board, call.actor, call.given
    actor.require(Act.WORK)
    task = _outside(call)
    try:
        claim = board.claims.claim_one(actor, task, WORKER)
    except NotWaiting as error:
        raise ApiError(409, "not_waiting", str(error)) from error
    judgement: dict[str, Any] = {"summary": given.text("summary"), "confidence": given.number("confidence")}
    judgement = {name: value for name, value in judgement.items() if value is not None}
    if risks := given.names("risks"):
        judgement["risks"] = risks
    wish: Wish = next((it for it in REVIEWS if it == given.text("review")), "auto")
    settled = board.claims.complete(Claimed(actor, claim), given.value("result"), judgement or None, wish)
    status = settled.task["status"]
    before = "This result was reported before. " if settled.repeated else "The result was taken. "
    body = {"task_id": settled.task["task_id"], "status": status, "message": before + shown.what_next(status)}
    return Reply(body | ({"repeated": True} if settled.repeated else {}))


def _outside(call: Call) -> int:
    """The internal id of the task whose result is reported. Raises ApiError, NoSuchTask.

    Whoever may work may know of every task that waits for outside workers, as if he had claimed it; of no other.
    """
    board, task_id = call.board, call.given.needed("task_id")
    with board.db.read() as connection:
        try:
            row = find(connection, canonical(task_id))
        except BadTaskId:
            row = None
        if row is None or row["home_pool"] != Pool.OUTSIDE:
            if row is None or not call.actor.may(Act.READ, own=row["requester"] == call.actor.identity):
                raise NoSuchTask(task_id)
            raise ApiError(
                409,
                "not_outside",
                f"Tasks of the type {row['type']} are worked on by the board itself or by people; it takes no result "
                "for them. Use add_note to tell something.",
            )
        spec = board.catalogue.version(connection, row["type"], row["type_version"]).spec
    schema = spec.handler.output_schema
    if schema is not None and (found := first_problem(schema, call.given.value("result"))) is not None:
        raise _refused(f"result{found[0]}", found[1])
    return int(row["id"])


def _refused(field: str, problem: str) -> ApiError:
    return ApiError(422, "invalid_field", f"{field}: {problem}.", [{"field": field, "message": problem}])


ADD_NOTE = Verb(
    "add_note",
    "Write a note",
    "Writes a remark into the history of a task, where people see it. Nothing else of the task changes.",
    (TASK_ID, _NOTE),
    note,
)
REPORT_RESULT = Verb(
    "report_result",
    "Report a result",
    "Hands in the result of a task that waits for outside work, when you have done that work. The board checks it, may "
    "ask a person, and closes the task. Report once; the same report again changes nothing.",
    (TASK_ID, _RESULT, _SUMMARY, _CONFIDENCE, _RISKS, _REVIEW),
    report,
)
