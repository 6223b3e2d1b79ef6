"""What the pages call things: labels for the contract's names, and refusals of the rooms in the pages' own words.

N_ marks a text for the translators without translating it; the templates and `said` do that later.
"""

from __future__ import annotations

from typing import Any

from board.access.errors import AccessError
from board.access.rights import Forbidden
from board.review.decide import DecisionRefused
from board.review.policy import NotEligible
from board.tasks.intake import Problem
from board.tasks.ledger import Stale
from board.tasks.states import IllegalMove
from board.tasks.visible import Archived
from board.web.language import Language


def N_(text: str) -> str:
    return text


def NN_(one: str, many: str) -> tuple[str, str]:
    return one, many


STATUS = {
    "pending": N_("Pending"),
    "running": N_("Running"),
    "needs_review": N_("Needs review"),
    "retrying": N_("Retrying"),
    "done": N_("Done"),
    "failed": N_("Failed"),
    "cancelled": N_("Cancelled"),
}
RISK = {"high": N_("High risk"), "medium": N_("Medium risk"), "low": N_("Low risk")}
ROLE = {"owner": N_("Owner"), "operator": N_("Operator"), "reviewer": N_("Reviewer"), "viewer": N_("Viewer")}
PRIORITY = {"P0": N_("Urgent"), "P1": N_("High"), "P2": N_("Normal"), "P3": N_("Low")}
PHASE = {"work": N_("Work"), "act": N_("Action")}
REASON = {
    "policy": N_("This type is always reviewed."),
    "sample": N_("Picked at random as a sample."),
    "low_confidence": N_("The AI is not sure enough."),
    "risk": N_("The AI names a risk."),
    "output_rule": N_("The output fits a rule of this type."),
    "partial_result": N_("Only a part of the result came back."),
    "empty_output": N_("The output is empty."),
    "invalid_output": N_("The output does not have the expected shape."),
    "permanent_failure": N_("The work failed, and trying the same again would not help."),
    "unknown_outcome": N_("Something was sent, and nobody can tell whether it happened."),
    "direct": N_("This type goes straight to a person."),
    "input_needed": N_("The workflow asks a person."),
}
# Reasons whose message, written in English by the board or by the outside system, says more than our own sentence.
DETAILED = {"output_rule", "partial_result", "invalid_output", "permanent_failure", "unknown_outcome", "input_needed"}
VERDICT = {
    "approve": N_("Approve"),
    "revise": N_("Revise"),
    "reject": N_("Reject"),
    "happened": N_("It happened"),
    "not_happened": N_("It did not happen: send again"),
    "drop": N_("Drop it"),
    "answer": N_("Answer"),
}
DECIDED = {
    "approve": N_("Approved"),
    "revise": N_("Sent back"),
    "reject": N_("Rejected"),
    "happened": N_("Confirmed as done"),
    "not_happened": N_("Sent again"),
    "drop": N_("Dropped"),
    "answer": N_("Answered"),
}
DECIDED_BY = {
    "approve": N_("{who} approved this."),
    "revise": N_("{who} sent this back for another round."),
    "reject": N_("{who} rejected this."),
    "happened": N_("{who} said that it happened."),
    "not_happened": N_("{who} said that it did not happen, and it is sent again."),
    "drop": N_("{who} dropped this."),
}
REASON_CLASS = {
    "wrong": N_("Wrong"),
    "incomplete": N_("Incomplete"),
    "policy": N_("Against our rules"),
    "duplicate": N_("A duplicate"),
    "other": N_("Something else"),
}
# Quick texts for "revise"; they only fill the field, which stays open to every other wish.
CHIPS = (N_("Make it shorter."), N_("Make it friendlier."), N_("Check the facts again."), N_("Answer in Chinese."))
OPERATION = {
    "reserved": N_("Reserved"),
    "sent": N_("Sent, no answer yet"),
    "confirmed": N_("Confirmed"),
    "rejected": N_("Refused"),
    "unknown": N_("Outcome unknown"),
}
# Outside calls
OPERATION_TAB = {
    "question": N_("In question"),
    "open": N_("Under way"),
    "rejected": N_("Refused"),
    "confirmed": N_("Confirmed"),
    "all": N_("All"),
}
OPERATION_KIND = {
    "dify.run": N_("A run in Dify"),
    "dify.chat": N_("A message to an app in Dify"),
    "dify.completion": N_("A text from an app in Dify"),
    "webhook.action": N_("An action"),
    "mail": N_("A mail"),
    "webhook.resume": N_("The result, for the flow that waits"),
    "webhook.callback": N_("Word to the sender of a task"),
    "outside": N_("A call of another program"),
}
OPERATION_EVENT = {
    "reserved": N_("Reserved"),
    "sent": N_("Sent"),
    "confirmed": N_("Its program said that it happened"),
    "rejected": N_("Its program said that it did not happen"),
    "unknown": N_("The outcome is unknown"),
    "asked": N_("The other side was asked"),
    "refused": N_("Refused"),
    "resolved": N_("Answered"),
}
TRY = {
    "confirmed": N_("Confirmed"),
    "rejected": N_("Refused"),
    "unknown": N_("No certain answer"),
    "transient": N_("To be tried again"),
}
FOUND = {
    "happened": N_("It happened"),
    "not_happened": N_("It did not happen"),
    "drop": N_("It does not matter any more"),
}
FOUND_WITH_TASK = {
    "happened": N_("It is not sent again, and the task goes on."),
    "not_happened": N_("The task goes back to work, and it is sent once more."),
    "drop": N_("Nothing more is sent, and the task is cancelled."),
}
FOUND_OUTSIDE = {
    "happened": N_("Whoever asks next is told that it was done, with the number."),
    "not_happened": N_("Its program may do it when it asks next."),
    "drop": N_("Whoever asks next is told not to do it."),
}
FOUND_ENDED = {
    "happened": N_("It is noted. The task stays as it is."),
    "not_happened": N_("It is noted. Requeue the task to have it sent again."),
    "drop": N_("It is noted. The task stays as it is."),
}
FOUND_OF_CONNECTION = {
    "ok": N_("Good."),
    "warning": N_("Worth knowing."),
    "wrong": N_("Wrong."),
}
OUTCOME = {
    "done": N_("Done"),
    "asked": N_("Asked a person"),
    "needs_review": N_("Asked a person"),
    "pending": N_("Work done"),
    "retrying": N_("To be tried again"),
    "failed": N_("Failed"),
    "cancelled": N_("Cancelled"),
    "handed_back": N_("Handed back"),
    "lease_lost": N_("Worker lost"),
    "succeeded": N_("Done"),
    "unknown": N_("Outcome unknown"),
    "open": N_("Outcome not known yet"),
    "waited": N_("Waited for another"),
}
EVENT = {
    "created": N_("Created"),
    "started": N_("Started"),
    "done": N_("Done"),
    "work_done": N_("Work done, the action follows"),
    "review_asked": N_("A review was asked for"),
    "outcome_unknown": N_("The outcome of a call is unknown"),
    "retry_planned": N_("Failed, a retry is planned"),
    "reconcile_planned": N_("The outcome of a call is not known yet: it is asked again"),
    "form_answered": N_("The form was answered"),
    "done_before": N_("Done before by another task; nothing was sent"),
    "operation_refused": N_("The key of its action belongs to something else; nothing was sent"),
    "operation_resolved": N_("A person said what became of a call"),
    "failed": N_("Failed"),
    "handed_back": N_("Handed back by a worker that stopped"),
    "lease_lost": N_("Its worker went silent"),
    "worker_died": N_("Its workers died too often"),
    "cancelled": N_("Cancelled"),
    "cancel_requested": N_("Asked to stop"),
    "approved": N_("Approved"),
    "revised": N_("Sent back with an instruction"),
    "rejected": N_("Rejected"),
    "decision_undone": N_("The decision was undone"),
    "confirmed_happened": N_("A person said that it happened"),
    "send_again": N_("A person said that it did not happen: sent again"),
    "dropped": N_("Dropped"),
    "requeued": N_("Put back into the queue"),
    "run_now": N_("Run now instead of waiting"),
    "aged": N_("Moved up, as it has waited long"),
    "hurried": N_("Moved up, as its deadline is near"),
    "deadline_missed": N_("Its deadline has passed"),
    "edited": N_("Edited"),
    "acknowledged": N_("The failure was acknowledged"),
    "duplicate": N_("Sent in again; nothing was changed"),
    "stale_result": N_("A late result was refused"),
    "callback_resent": N_("The callback was sent again"),
    "note": N_("A note"),
    "called_back": N_("The result came by callback"),
    "callback_late": N_("A callback came that does not count any more"),
}
ACTOR = {"worker": N_("Worker"), "timer": N_("Timer"), "system": N_("The board"), "key": N_("API key")}
CHANNEL = {
    "web": N_("page"),
    "api": N_("API"),
    "cli": N_("command line"),
    "worker": N_("worker"),
    "timer": N_("timer"),
    "sweep": N_("rescue"),
    "dify": N_("Dify tool"),
    "mcp": N_("MCP"),
}
WAITING = {
    "person": N_("A person decides."),
    "need": N_("It waits for other tasks to be done."),
    "reconciling": N_("It is being found out what became of a call."),
    "grace": N_("It was decided; the decision can still be undone for a moment."),
    "retry": N_("It is tried again later."),
    "due": N_("It starts later, as was asked."),
    "paused": N_("Work of this type, or of the whole queue, is paused by a person."),
    "limit": N_("A limit of its type or connection is reached."),
    "alone": N_("Its worker died before; it runs as soon as a worker is free of other work."),
    "outside": N_("It waits for an outside program to claim it."),
    "queue": N_("It starts as soon as a worker has a free slot."),
}
NO_WORKER = {
    "none": N_("No worker is running."),
    "handler": N_("No worker that runs has the handler of this type installed."),
    "type": N_("The workers that run are narrowed to other types."),
    "lane": N_("No worker that runs takes this type from this lane."),
    "outside": N_("No outside program has claimed work of this type lately."),
}
_BEFORE = NN_("{n} task of its lane is before it.", "{n} tasks of its lane are before it.")
_MORE_BEFORE = N_("More than {n} tasks of its lane are before it.")
_KEPT_BEFORE = NN_("It lets {n} task in before this one.", "It lets {n} tasks in before this one.")
_NEXT = N_("It is the next one of its lane.")
CAUSE = {
    "timeout": N_("Time-out"),
    "network": N_("Network"),
    "upstream_4xx": N_("Refused by the other side (4xx)"),
    "upstream_5xx": N_("Error of the other side (5xx)"),
    "auth": N_("Sign-in refused"),
    "rate_limit": N_("Rate limit"),
    "bad_output": N_("Unusable output"),
    "precondition": N_("A condition was not met"),
    "crash": N_("Crash"),
    "unknown": N_("Unknown"),
}
_NOTES = {
    "welcome": N_("Welcome. Your password is set and you are signed in."),
    "signed_out": N_("You are signed out."),
    "undone": N_("The decision was undone; the review waits again."),
    "run_now": N_("The task runs as soon as a worker is free."),
    "saved": N_("The payload was saved."),
    "answered": N_("Your answer is kept, with its reason."),
    "resent": N_("The call goes out again now."),
    "none_selected": N_("Select at least one task first."),
}
_COUNTED = {
    "cancel": (
        NN_("{n} task was cancelled or asked to stop.", "{n} tasks were cancelled or asked to stop."),
        NN_("{n} task could not be cancelled from where it stands.", "{n} tasks could not be cancelled from there."),
    ),
    "requeue": (
        NN_("{n} task was put back into the queue.", "{n} tasks were put back into the queue."),
        NN_("{n} task could not be put back from where it stands.", "{n} tasks could not be put back from there."),
    ),
    "acknowledge": (
        NN_("The failure of {n} task was acknowledged.", "The failures of {n} tasks were acknowledged."),
        NN_("{n} task has not failed, so nothing was done.", "{n} tasks have not failed, so nothing was done to them."),
    ),
}
_REFUSED = {
    "not_found": N_("There is no such review."),
    "already_decided": N_("This review is no longer open."),
    "verdict_not_offered": N_("This answer is not offered here."),
    "review_changed": N_("What you decided about has changed meanwhile. Look at it again, then decide."),
    "instruction_missing": N_("Say what should be done differently."),
    "answer_does_not_fit": N_("The answer does not fit the form: fill in every field and choose one of its answers."),
    "reason_missing": N_("Say why: the reason stays with the task."),
    "answer_missing": N_("Say what you found: one of the three answers."),
    "outcome_known": N_("It has become known meanwhile what became of it. Look at it again."),
    "not_unknown": N_("Nothing is in question here any more."),
    "rounds_spent": N_("This task has had all its rounds. Approve or reject it."),
    "cannot_undo": N_("This decision can no longer be undone: its time is over, or what follows has begun."),
}
# The sentences of board.access that reach a page.
_ACCESS = {
    N_("This link was used already or has expired; ask for a new one."),
    N_("This is not a mail address; write it like name@example.org."),
    N_("There is a user with the address {email} already."),
    N_("The password is too short; use at least {least} characters."),
    N_("The password is too long; use at most {most} characters."),
    N_("The mail address or the password is wrong."),
    N_("Too many failed sign-ins for this address; try again in {minutes} min."),
}
NOT_JSON = N_("This is not JSON: {problem}")
_MOVE = N_("The task is in the state “{status}” now; from there this is not possible.")
_STALE = N_("The task has changed meanwhile. Look at it again, then repeat the change.")
_ARCHIVED = N_("This task was archived on {day}. All of it stands in the file {file} of the board's data folder.")
_FORBIDDEN = N_("Your role does not allow this. Ask an owner, or sign in with another account.")
_NOT_ELIGIBLE = N_("You may read this review but not decide it; reviewers, operators and owners may.")
_PAYLOAD = N_("The payload does not fit this type: {problem}")

# The refusals that `said` has words for.
SPOKEN = (DecisionRefused, AccessError, NotEligible, Forbidden, IllegalMove, Stale, Problem, Archived)


def label(language: Language, table: dict[str, str], name: Any) -> str:
    """The label of a name; a name that nobody foresaw stands for itself."""
    text = table.get(str(name))
    return language.gettext(text) if text is not None else str(name).replace("_", " ")


def waiting(language: Language, waits: dict[str, Any]) -> str:
    """Why a task does not move, from its `waiting_for`."""
    behind: int | None = waits.get("behind")
    if waits["code"] == "no_worker":
        return label(language, NO_WORKER, waits["cause"])
    if waits["code"] == "limit":
        reason = label(language, WAITING, "limit")
        kept = language.ngettext(*_KEPT_BEFORE, behind).format(n=language.number(behind)) if behind else ""
        return f"{reason} {kept}".rstrip()
    if behind and waits.get("more"):
        return language.gettext(_MORE_BEFORE).format(n=language.number(behind))
    if behind:
        return language.ngettext(*_BEFORE, behind).format(n=language.number(behind))
    reason = label(language, WAITING, waits["code"])
    return reason if behind is None else f"{language.gettext(_NEXT)} {reason}"


def note(language: Language, code: str) -> str | None:
    """What was done, from the code that the last page left: `cancel:3:1` is three done and one not."""
    name, *numbers = code[:60].split(":")
    counts = [int(number) for number in numbers if number.isdigit() and len(number) < 5]
    if name in _COUNTED and len(counts) == 2:
        return " ".join(
            language.ngettext(one, many, number).format(n=number)
            for (one, many), number in zip(_COUNTED[name], counts, strict=True)
            if number
        )
    return language.gettext(_NOTES[name]) if name in _NOTES else None


def refusal(language: Language, code: str) -> str:
    """Why a decision was refused, by the contract's code."""
    return language.gettext(_REFUSED[code])


def said(language: Language, error: Exception) -> str:
    """A refusal of the rooms in the reader's language."""
    match error:
        case DecisionRefused():
            return refusal(language, error.code) if error.code in _REFUSED else str(error)
        case AccessError():
            return language.gettext(error.text).format(**error.values)
        case NotEligible():
            return language.gettext(_NOT_ELIGIBLE)
        case Forbidden():
            return language.gettext(_FORBIDDEN)
        case IllegalMove():
            return language.gettext(_MOVE).format(status=label(language, STATUS, error.status))
        case Archived():
            return language.gettext(_ARCHIVED).format(day=error.day, file=error.file)
        case Stale():
            return language.gettext(_STALE)
        case Problem():
            return language.gettext(_PAYLOAD).format(problem=str(error))
        case _:
            return str(error)
