"""What the pages call the states, events and attempts of a task, and why it waits."""

from __future__ import annotations

from typing import Any

from board.web.language import Language
from board.web.wording.marks import N_, NN_, label

STATUS = {
    "pending": N_("Pending"),
    "running": N_("Running"),
    "needs_review": N_("Needs review"),
    "retrying": N_("Retrying"),
    "done": N_("Done"),
    "failed": N_("Failed"),
    "cancelled": N_("Cancelled"),
}
PRIORITY = {"P0": N_("Urgent"), "P1": N_("High"), "P2": N_("Normal"), "P3": N_("Low")}
PHASE = {"work": N_("Work"), "act": N_("Action")}
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
    "call_withdrawn": N_("What still went on outside was called off"),
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
    "review_claimed": N_("The review was taken"),
    "review_taken_over": N_("The review was taken over"),
    "review_released": N_("The review was given back"),
    "review_snoozed": N_("The review was put aside"),
    "link_made": N_("A link to the review was made"),
    "link_revoked": N_("A link to the review was withdrawn"),
    "link_opened": N_("A link was opened (maybe by a scanner)"),
    "assigned": N_("Assigned"),
    "review_expired": N_("Nobody decided in time"),
    "review_overdue": N_("The review is overdue"),
    "review_reminder": N_("The review is due soon"),
    "approval_given": N_("Approved by one of several"),
    "approval_taken_back": N_("An approval was taken back"),
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
