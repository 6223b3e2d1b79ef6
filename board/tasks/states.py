"""The seven states of a task and the legal moves between them. Pure: no database, no clock, nothing of ours.

A task has a phase beside its status: `work` (the handler) and `act` (what happens after approval, or at once when no
review is asked). Every change of `tasks.status` anywhere in the board goes through a move that stands in RULES.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    NEEDS_REVIEW = "needs_review"
    RETRYING = "retrying"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Phase(StrEnum):
    WORK = "work"
    ACT = "act"


class Pool(StrEnum):
    """Whose slots a task waits for."""

    BOARD = "board"  # the board's own workers
    FILES = "files"  # the same, on slots of their own: work that keeps a processor or a disk busy
    OUTSIDE = "outside"  # programs that claim over HTTP


# The order inside a lane, before age: actions of approved tasks and tasks whose caller waits on the line come first.
RANK_FIRST, RANK_USUAL = 0, 1


class Actor(StrEnum):
    """Who may make a move. `timer` and `sweep` are the board itself: due times, and the rescue of lost leases."""

    CALLER = "caller"
    WORKER = "worker"
    REVIEWER = "reviewer"
    OPERATOR = "operator"
    TIMER = "timer"
    SWEEP = "sweep"


class Move(StrEnum):
    CREATE = "create"
    CLAIM = "claim"
    SUCCEED = "succeed"  # to done
    PROCEED = "proceed"  # work succeeded, no review, an action is left
    ASK = "ask"  # work succeeded or failed in a way that a person must see
    ASK_UNKNOWN = "ask_unknown"  # nobody can tell whether a side effect happened
    RETRY = "retry"
    RECONCILE = "reconcile"  # what became of a call is not known yet: asked again later
    FAIL = "fail"
    HAND_BACK = "hand_back"
    RESCUE = "rescue"  # the lease was lost, nothing was sent that matters
    GIVE_UP = "give_up"  # the lease was lost once too often
    STOP = "stop"  # a running task stops because its cancellation was asked
    APPROVE = "approve"
    ANSWER = "answer"  # the form that the work waits with was answered, or has expired
    FINISH = "finish"
    REVISE = "revise"
    REJECT = "reject"
    EXPIRE = "expire"  # nobody decided in time, and the type says: cancelled
    EXPIRE_FAILED = "expire_failed"  # the same, and the type says: failed
    UNDO_APPROVE = "undo_approve"
    UNDO_REJECT = "undo_reject"
    HAPPENED = "happened"  # unknown outcome: it did happen, nothing is left to do
    HAPPENED_GO_ON = "happened_go_on"  # unknown outcome of the work: it did happen, the action is left
    SEND_AGAIN = "send_again"
    DROP = "drop"
    CANCEL = "cancel"
    REQUEUE = "requeue"
    REQUEUE_WORK = "requeue_work"
    RUN_NOW = "run_now"


@dataclass(frozen=True, slots=True)
class Rule:
    """`to_phase` None keeps the phase. `sources` empty: the task does not exist yet."""

    sources: frozenset[Status]
    phases: frozenset[Phase]
    to: Status
    to_phase: Phase | None
    by: frozenset[Actor]


# What is done to a task is said of it in the passive; every other move is named as it stands.
_PASSIVE: dict[str, str] = {
    "acknowledge": "be acknowledged",
    Move.CANCEL: "be cancelled",
    Move.REQUEUE: "be requeued",
    Move.REQUEUE_WORK: "be requeued",
    Move.APPROVE: "be approved",
    Move.REVISE: "be sent back",
    Move.REJECT: "be rejected",
}


class IllegalMove(Exception):
    """The move does not start from where the task stands. The text says so in plain words.

    move: one of Move, or another act that depends on the status.
    """

    def __init__(self, move: str, status: Status, phase: Phase) -> None:
        super().__init__(f"A task that is {status} cannot {_PASSIVE.get(move, move.replace('_', ' '))}.")
        self.move, self.status, self.phase = move, status, phase


_S, _P, _A = Status, Phase, Actor
_BOTH = frozenset(Phase)


def _rule(
    sources: set[Status], to: Status, by: set[Actor], *, phases: frozenset[Phase] = _BOTH, to_phase: Phase | None = None
) -> Rule:
    return Rule(frozenset(sources), phases, to, to_phase, frozenset(by))


_WORK, _ACT = frozenset({Phase.WORK}), frozenset({Phase.ACT})
_PEOPLE = {_A.CALLER, _A.OPERATOR}

RULES: dict[Move, Rule] = {
    Move.CREATE: _rule(set(), _S.PENDING, {_A.CALLER, _A.TIMER}, to_phase=_P.WORK),
    Move.CLAIM: _rule({_S.PENDING, _S.RETRYING}, _S.RUNNING, {_A.WORKER}),
    Move.SUCCEED: _rule({_S.RUNNING}, _S.DONE, {_A.WORKER}),
    Move.PROCEED: _rule({_S.RUNNING}, _S.PENDING, {_A.WORKER}, phases=_WORK, to_phase=_P.ACT),
    Move.ASK: _rule({_S.RUNNING}, _S.NEEDS_REVIEW, {_A.WORKER}),
    Move.ASK_UNKNOWN: _rule({_S.RUNNING}, _S.NEEDS_REVIEW, {_A.WORKER, _A.SWEEP}),
    Move.RETRY: _rule({_S.RUNNING}, _S.RETRYING, {_A.WORKER}),
    Move.RECONCILE: _rule({_S.RUNNING}, _S.RETRYING, {_A.WORKER}),
    Move.FAIL: _rule({_S.RUNNING}, _S.FAILED, {_A.WORKER}),
    Move.HAND_BACK: _rule({_S.RUNNING}, _S.PENDING, {_A.WORKER}),
    Move.RESCUE: _rule({_S.RUNNING}, _S.RETRYING, {_A.SWEEP}),
    Move.GIVE_UP: _rule({_S.RUNNING}, _S.FAILED, {_A.SWEEP}),
    Move.STOP: _rule({_S.RUNNING}, _S.CANCELLED, {_A.WORKER, _A.SWEEP}),
    Move.APPROVE: _rule({_S.NEEDS_REVIEW}, _S.PENDING, {_A.REVIEWER, _A.TIMER}, phases=_WORK, to_phase=_P.ACT),
    Move.ANSWER: _rule({_S.NEEDS_REVIEW}, _S.PENDING, {_A.REVIEWER, _A.TIMER}, phases=_WORK),
    Move.FINISH: _rule({_S.PENDING}, _S.DONE, {_A.TIMER}, phases=_ACT),
    Move.REVISE: _rule({_S.NEEDS_REVIEW}, _S.PENDING, {_A.REVIEWER}, to_phase=_P.WORK),
    Move.REJECT: _rule({_S.NEEDS_REVIEW}, _S.CANCELLED, {_A.REVIEWER}),
    Move.EXPIRE: _rule({_S.NEEDS_REVIEW}, _S.CANCELLED, {_A.TIMER}),
    Move.EXPIRE_FAILED: _rule({_S.NEEDS_REVIEW}, _S.FAILED, {_A.TIMER}),
    Move.UNDO_APPROVE: _rule({_S.PENDING}, _S.NEEDS_REVIEW, {_A.REVIEWER}, phases=_ACT, to_phase=_P.WORK),
    Move.UNDO_REJECT: _rule({_S.CANCELLED}, _S.NEEDS_REVIEW, {_A.REVIEWER}),
    Move.HAPPENED: _rule({_S.NEEDS_REVIEW}, _S.DONE, {_A.REVIEWER}),
    Move.HAPPENED_GO_ON: _rule({_S.NEEDS_REVIEW}, _S.PENDING, {_A.REVIEWER}, phases=_WORK, to_phase=_P.ACT),
    Move.SEND_AGAIN: _rule({_S.NEEDS_REVIEW}, _S.PENDING, {_A.REVIEWER}),
    Move.DROP: _rule({_S.NEEDS_REVIEW}, _S.CANCELLED, {_A.REVIEWER}),
    Move.CANCEL: _rule({_S.PENDING, _S.RETRYING, _S.NEEDS_REVIEW}, _S.CANCELLED, _PEOPLE),
    Move.REQUEUE: _rule({_S.FAILED, _S.CANCELLED}, _S.PENDING, _PEOPLE),
    Move.REQUEUE_WORK: _rule({_S.FAILED, _S.CANCELLED}, _S.PENDING, _PEOPLE, to_phase=_P.WORK),
    Move.RUN_NOW: _rule({_S.RETRYING}, _S.PENDING, {_A.OPERATOR}),
}

TERMINAL = frozenset({Status.DONE, Status.FAILED, Status.CANCELLED})
AT_REST = TERMINAL | {Status.NEEDS_REVIEW}  # nothing happens but by a person, or the clock
READY = RULES[Move.CLAIM].sources


def after(move: Move, status: Status, phase: Phase) -> tuple[Status, Phase]:
    """Where `move` leads from here. Raises IllegalMove where it may not be made."""
    rule = RULES[move]
    if status not in rule.sources or phase not in rule.phases:
        raise IllegalMove(move, status, phase)
    return rule.to, rule.to_phase or phase


def legal(status: Status, phase: Phase, by: Actor) -> list[Move]:
    """The moves that this actor may make from here; menus are built from it."""
    return [move for move, rule in RULES.items() if status in rule.sources and phase in rule.phases and by in rule.by]
