"""What was done, said once on the page that follows."""

from __future__ import annotations

from board.web.language import Language
from board.web.wording.marks import N_, NN_

_NOTES = {
    "welcome": N_("Welcome. Your password is set and you are signed in."),
    "signed_out": N_("You are signed out."),
    "undone": N_("The decision was undone; the review waits again."),
    "run_now": N_("The task runs as soon as a worker is free."),
    "saved": N_("The payload was saved."),
    "saved_and_run": N_("The payload was saved, and the work begins anew with it."),
    "snoozed": N_("The review is put aside and comes back by itself."),
    "answered": N_("Your answer is kept, with its reason."),
    "unsubscribed": N_("The subscription is removed; nothing more is sent to it."),
    "sent_again": N_("What was given up in the last three days goes out again now."),
    "resent": N_("The call goes out again now."),
    "view_saved": N_("The view is saved."),
    "view_renamed": N_("The view has its new name."),
    "view_deleted": N_("The view is deleted."),
    "view_exists": N_("You have a view of this name already; nothing was changed."),
    "too_many_views": N_("You have as many saved views as there may be. Delete one first."),
    "name_missing": N_("Give the view a name."),
    "name_too_long": N_("The name of a view may have at most 80 characters."),
    "settings_saved": N_("Your settings were saved."),
    "route_removed": N_("It is removed; nothing more is told by it."),
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
