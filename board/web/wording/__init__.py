"""What the pages call things: labels for the contract's names, and refusals of the rooms in the pages' own words.

The templates reach every label by its table's name: `status|label("STATUS")`.
"""

from __future__ import annotations

from board.web.wording.marks import N_, NN_, label
from board.web.wording.notes import note
from board.web.wording.operations import (
    BREAKER,
    FOUND,
    FOUND_ENDED,
    FOUND_OF_CONNECTION,
    FOUND_OUTSIDE,
    FOUND_WITH_TASK,
    OPERATION,
    OPERATION_EVENT,
    OPERATION_KIND,
    OPERATION_TAB,
    TRY,
)
from board.web.wording.people import ACTOR, CHANNEL, ROLE
from board.web.wording.refusals import NOT_JSON, SPOKEN, refusal, said
from board.web.wording.reports import CANCELLED, FAILURE, HEADLINE, TIMED_OUT
from board.web.wording.reviews import (
    APART,
    CAUTION,
    CHIPS,
    DECIDED,
    DECIDED_BY,
    DETAILED,
    DUE,
    GIVEN,
    GROUP,
    REASON,
    REASON_CLASS,
    REASON_SHORT,
    REFUSED,
    RISK,
    VERDICT,
    VIEW,
)
from board.web.wording.tasks import CAUSE, EVENT, NO_WORKER, OUTCOME, PHASE, PRIORITY, STATUS, WAITING, waiting

__all__ = [
    "ACTOR",
    "APART",
    "BREAKER",
    "CANCELLED",
    "CAUSE",
    "CAUTION",
    "CHANNEL",
    "CHIPS",
    "DECIDED",
    "DECIDED_BY",
    "DETAILED",
    "DUE",
    "EVENT",
    "FAILURE",
    "FOUND",
    "FOUND_ENDED",
    "FOUND_OF_CONNECTION",
    "FOUND_OUTSIDE",
    "FOUND_WITH_TASK",
    "GIVEN",
    "GROUP",
    "HEADLINE",
    "NN_",
    "NOT_JSON",
    "NO_WORKER",
    "N_",
    "OPERATION",
    "OPERATION_EVENT",
    "OPERATION_KIND",
    "OPERATION_TAB",
    "OUTCOME",
    "PHASE",
    "PRIORITY",
    "REASON",
    "REASON_CLASS",
    "REASON_SHORT",
    "REFUSED",
    "RISK",
    "ROLE",
    "SPOKEN",
    "STATUS",
    "TIMED_OUT",
    "TRY",
    "VERDICT",
    "VIEW",
    "WAITING",
    "label",
    "note",
    "refusal",
    "said",
    "waiting",
]
