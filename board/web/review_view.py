"""Everything that the page of one review shows, gathered from the rooms."""

from __future__ import annotations

from typing import Any

from board.catalogue.spec import TypeSpec
from board.db.clock import read_now
from board.effects import shown
from board.effects.addresses import masked
from board.review import edits, follows, mentions, read
from board.review.policy import VERDICTS, Reason
from board.tasks.history import notes_of
from board.tasks.read import attempt_document, attempts_of, by_internal_id
from board.web import audit, hidden, prose
from board.web.attachments import attachments
from board.web.attendance import attendance
from board.web.cautions import cautions
from board.web.comparison import views
from board.web.tree import Node, tree
from board.web.visit import Visit
from board.web.wording.refusals import not_eligible

_MOST_COMMENTS = 100  # the last ones; all of them stand in the history
# For how long a review can be put aside on the page, in hours; the API takes any time.
HOURS = (1, 4, 24, 72, 168)
Row = Any  # a row of `reviews` or `tasks`; its real type belongs to the rooms that ask the database


def listed(visit: Visit, connection: Any, rows: list[Any]) -> list[dict[str, Any]]:
    """Rows of the inbox with what only a reader needs: the type's title and the title without hidden characters."""
    found: hidden.Found = hidden.Found()
    return [
        {
            **row,
            "title": hidden.strip(row["title"], found),
            "type_title": _spec(visit, connection, row).shown_title(visit.language.code),
            "confidence": (row["judgement"] or {}).get("confidence"),
            "claimed_by": row.get("claimed_by"),
            "together": row["risk"] == "low" and "approve" in VERDICTS[Reason(row["reason"])],
        }
        for row in rows
    ]


def detail(visit: Visit, connection: Any, row: Row, *, raw: bool = False) -> dict[str, Any]:
    """One review: its document, and each part of it in the form that the template shows.

    raw: hidden characters are written out instead of left out.
    """
    clean = _revealed if raw else hidden.strip_all
    board = visit.board
    task_row = by_internal_id(connection, row["task"])
    task = board.task_document(connection, task_row)
    document = read.document(connection, board.catalogue, row, task_row, task, visit.actor)
    spec = _spec(visit, connection, task_row)
    found, found_in_judgement, found_in_input = hidden.Found(), hidden.Found(), hidden.Found()
    result = clean(task["result"], found)
    output, repeated = _output(result, spec)
    judgement = clean(task["judgement"], found_in_judgement)
    attempts = [attempt_document(item) for item in attempts_of(connection, row["task"])]
    calls = shown.of_task(connection, row["task"])
    moment = read_now(connection)
    visits = read.of_task(connection, row["task"])
    rounds = _rounds(visits, attempts, row["round"])
    payload = clean(task["payload"], found_in_input)
    consequence = consequence_shown(document["consequence"], task["callback_url"])
    written = hidden.strip_all([task["judgement"], task["result"]], hidden.Found())
    given = follows.given(connection, spec, task_row)
    return {
        "document": document,
        "task": task,
        "title": hidden.strip(task["title"], found) or task["task_id"],
        "type_title": spec.shown_title(visit.language.code),
        "spec": spec,
        "consequence": consequence,
        "given": [(item, tree(clean(item.value, hidden.Found()))) for item in given],
        "judgement": judgement if any(judgement.values()) else None,
        "output": output,
        "repeated": repeated,
        "input": tree(payload),
        "hidden": hidden.named(found | found_in_judgement),  # the judgement is a part of the result: not counted twice
        "hidden_in_input": hidden.named(found_in_input),
        "rounds": rounds,
        "views": views(rounds, result, payload),
        "cautions": cautions(written, [task["payload"], task["title"], consequence]),
        "attachments": attachments(visit, connection, task["payload"], task["result"]),
        "raw": raw,
        "editable": edits.editable(spec, task["result"]) if spec.review.approvals == 1 else [],
        "attempts": attempts,
        "operations": calls,
        "form": _form(document["form"]),
        "in_question": next((call for call in calls if call["id"] == document["operation_id"]), None),
        "audit": audit.panel(connection, row["task"], visits),
        "undo_seconds": undo_seconds(visit, row, moment),
        "not_yours": _not_yours(visit, document),
        "hours": HOURS,
        **attendance(visit, connection, row),
        "comments": [_comment(event) for event in notes_of(connection, row["task"], _MOST_COMMENTS)],
    }


def _comment(event: Any) -> dict[str, Any]:
    text = hidden.strip(event["note"], hidden.Found())
    by = f"{event['actor_kind']}:{event['actor_name']}"
    called = (event["data"] or {}).get("mentions") or ()
    return {"by": by, "at": event["at"], "parts": mentions.parts(text, called), "text": text}


def _not_yours(visit: Visit, document: dict[str, Any]) -> str | None:
    """Why this reader may not decide, in his words; None where he may."""
    why = document["not_yours"]
    return not_eligible(visit.language, why["why"], document["reviewers"]) if why else None


def _revealed(value: Any, found: hidden.Found) -> Any:
    hidden.strip_all(value, found)
    return hidden.reveal(value)


def undo_seconds(visit: Visit, row: Row, moment: Any) -> int:
    """For how long this person may still take the decision back; 0 when not."""
    if row["status"] != "decided" or row["decider"] != visit.actor.identity or row["undo_until"] is None:
        return 0
    return max(0, int((row["undo_until"] - moment).total_seconds()))


def just_decided(visit: Visit, connection: Any, review_id: str) -> dict[str, Any] | None:
    """What this person has just decided, for the line that offers to undo it. None for anything else."""
    if not review_id.isdigit() or len(review_id) > 18:
        return None
    row = read.by_id(connection, int(review_id))
    if row is None or row["status"] != "decided" or row["decider"] != visit.actor.identity:
        return None
    task = by_internal_id(connection, row["task"])
    return {
        "id": row["id"],
        "verdict": row["verdict"],
        "title": hidden.strip(task["title"], hidden.Found()) or task["task_id"],
        "undo_seconds": undo_seconds(visit, row, read_now(connection)),
    }


def _spec(visit: Visit, connection: Any, row: Row) -> TypeSpec:
    return visit.board.catalogue.version(connection, row["type"], row["type_version"]).spec


def consequence_shown(stored: dict[str, Any] | None, callback_url: str | None) -> dict[str, Any]:
    """What follows from an approval: the type's action and the word to the caller, addresses without their secrets."""
    callback = masked(callback_url) if callback_url else None
    if stored is None:
        return {"use": None, "connection": None, "url": None, "callback": callback}
    return {
        "use": stored["use"],
        "connection": stored["connection"],
        "url": masked(stored["url"]) if stored["url"] else None,
        "callback": callback,
    }


def _form(form: dict[str, Any] | None) -> dict[str, Any] | None:
    """The form that the work waits with: its text as safe HTML, everything else without hidden characters."""
    if form is None:
        return None
    plain: dict[str, Any] = hidden.strip_all(form, hidden.Found())
    return plain | {"html": prose.render(plain.get("content") or "")}


def _output(result: Any, spec: TypeSpec) -> tuple[Node | None, Node | None]:
    """The result, and apart from it what the judgement above it has shown already."""
    if result is None:
        return None, None
    shown = {path for path in spec.handler.judgement.model_dump().values() if path}
    if not isinstance(result, dict) or not shown & set(result):
        return tree(result, markdown=True), None
    own = {name: value for name, value in result.items() if name not in shown}
    again = {name: value for name, value in result.items() if name in shown}
    return (tree(own, markdown=True) if own else None), tree(again, markdown=True)


def _rounds(visits: list[Any], attempts: list[dict[str, Any]], current: int) -> list[dict[str, Any]]:
    """The rounds before this one: what came out, and what the reviewer asked for then."""
    rounds = []
    for visit in visits:
        if visit["verdict"] != "revise" or visit["round"] >= current:
            continue
        outputs = [item["output"] for item in attempts if item["round"] == visit["round"] and item["phase"] == "work"]
        last = next((value for value in reversed(outputs) if value is not None), None)
        last = hidden.strip_all(last, hidden.Found())
        rounds.append(
            {
                "round": visit["round"],
                "instruction": visit["instruction"],
                "by": visit["decider"],
                "at": visit["decided_at"],
                "result": last,
                "output": None if last is None else tree(last, markdown=True),
            }
        )
    return rounds
