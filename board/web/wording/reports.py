"""Labels of the weekly report."""

from __future__ import annotations

from board.web.wording.marks import N_
from board.web.wording.tasks import CAUSE

HEADLINE = {
    "done": N_("Done"),
    "failed": N_("Failed"),
    "cancelled": N_("Cancelled"),
    "timed_out": N_("Timed out"),
    "review_wait_p50": N_("Wait for a review"),
    "override_rate": N_("Overridden"),
}
FAILURE = CAUSE | {"review_expired": N_("Nobody decided in time")}
TIMED_OUT = {
    "handlers": N_("Attempts that took too long"),
    "deadlines": N_("Missed deadlines"),
    "reviews": N_("Overdue reviews"),
}
CANCELLED = {
    "rejected": N_("Rejected by a person"),
    "expired": N_("Nobody decided in time"),
    "dropped": N_("Given up after an unknown outcome"),
    "caller": N_("By who put it in, or an operator"),
    "board": N_("By the board"),
}
