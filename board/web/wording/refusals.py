"""What the rooms of the board refuse, in the reader's language."""

from __future__ import annotations

from collections.abc import Sequence

from board.access.errors import AccessError
from board.access.rights import Forbidden
from board.review.decide import DecisionRefused
from board.review.policy import NotEligible
from board.tasks.intake import Problem
from board.tasks.ledger import Stale
from board.tasks.states import IllegalMove
from board.tasks.visible import Archived
from board.web.language import Language
from board.web.wording.marks import N_, label
from board.web.wording.tasks import STATUS

_REFUSED = {
    "not_found": N_("There is no such review."),
    "already_decided": N_("This review is no longer open."),
    "verdict_not_offered": N_("This answer is not offered here."),
    "review_changed": N_("What you decided about has changed meanwhile. Look at it again, then decide."),
    "not_editable": N_("This part of the output may not be changed with an approval."),
    "edit_does_not_fit": N_("The changed output does not have the shape that its type asks for."),
    "instruction_missing": N_("Say what should be done differently."),
    "answer_does_not_fit": N_("The answer does not fit the form: fill in every field and choose one of its answers."),
    "reason_missing": N_("Say why: the reason stays with the task."),
    "answer_missing": N_("Say what you found: one of the three answers."),
    "outcome_known": N_("It has become known meanwhile what became of it. Look at it again."),
    "not_unknown": N_("Nothing is in question here any more."),
    "page_used": N_("Something was done by this link since the page was opened. Look at it again, then decide."),
    "bad_seal": N_("Nothing was done: the form was out of date. Look at it again, then decide."),
    "not_you": N_("Nothing was done: this link is for somebody else."),
    "rounds_spent": N_("This task has had all its rounds. Approve or reject it."),
    "claimed": N_("A colleague has taken this review."),
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
# Why somebody may not decide, by the policy's word for it.
_NOT_ELIGIBLE = {
    "role": N_("You may read this review but not decide it; reviewers, operators and owners may."),
    "reviewers": N_("You may read this review but not decide it. Who may: {names}"),
    "four_eyes": N_("Whoever put a task in or changed it does not decide about it; ask a colleague."),
    "approved": N_("You have approved this. It takes another person as well."),
    "sign_in": N_("This link shows the review; to decide it, sign in."),
}
_PAYLOAD = N_("The payload does not fit this type: {problem}")
# The refusals that `said` has words for.
SPOKEN = (DecisionRefused, AccessError, NotEligible, Forbidden, IllegalMove, Stale, Problem, Archived)


def refusal(language: Language, code: str) -> str:
    """Why a decision was refused, by the contract's code."""
    return language.gettext(_REFUSED[code])


def not_eligible(language: Language, why: str, reviewers: Sequence[str]) -> str:
    return language.gettext(_NOT_ELIGIBLE[why]).format(names=", ".join(reviewers))


def said(language: Language, error: Exception) -> str:
    """A refusal of the rooms in the reader's language."""
    match error:
        case DecisionRefused():
            return refusal(language, error.code) if error.code in _REFUSED else str(error)
        case AccessError():
            return language.gettext(error.text).format(**error.values)
        case NotEligible():
            return not_eligible(language, error.why, error.reviewers)
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
