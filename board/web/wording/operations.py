"""What the pages call calls to other systems, and what a person says about them."""

from __future__ import annotations

from board.web.wording.marks import N_

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
# A connection, by its breaker
BREAKER = {
    "closed": N_("Working"),
    "open": N_("Shut"),
    "half_open": N_("To be tried"),
}
OPERATION_KIND = {
    "dify.run": N_("A run in Dify"),
    "dify.chat": N_("A message to an app in Dify"),
    "dify.completion": N_("A text from an app in Dify"),
    "webhook.action": N_("An action"),
    "mail": N_("A mail"),
    "webhook.resume": N_("The result, for the flow that waits"),
    "webhook.callback": N_("Word to the sender of a task"),
    "webhook.subscription": N_("Word to a subscription"),
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
    "withdrawn": N_("Called off"),
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
