"""POST /tasks of many callers at once: what comes at the same time is checked, stored and answered in one go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from board.access.rights import Act, Actor
from board.api.deps import CHANNEL, in_thread
from board.api.errors import EXPECTED
from board.db.engine import is_away
from board.rooms import Board
from board.signals.callers import Caller
from board.tasks.bodies import TaskIn
from board.tasks.intake import Taken
from board.tasks.ledger import find, find_all
from board.tasks.visible import missing
from board.together import Together

# Bodies in one transaction: it takes some twenty milliseconds, for which a writer of SQLite keeps all others waiting.
MOST = 100
# Who sends one after another is back in about so long. Else two halves of the callers take turns, in twice as many
# transactions, of which each costs as much as twenty bodies.
GATHER_SECONDS = 0.003

Answer = tuple[Taken, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. stays: the caller waits on the line for what comes of it."""

    body: TaskIn
    actor: Actor
    idempotency_key: str | None
    stays: bool
    caller: Caller

    @property
    def alone(self) -> bool:
        """Whether it is done by itself: to look up the name of a host takes its time, a bound of a key is counted for
        one request, and a refusal of a task that exists would undo its neighbours."""
        limited = self.actor.rate is not None or self.actor.max_waiting is not None
        return self.body.callback_url is not None or self.body.on_duplicate == "reject" or limited


def taking(request: Request) -> Taking:
    """That of the application which answers this request."""
    found = request.app.state.taking
    assert isinstance(found, Taking)
    return found


class Taking:
    """One for each application: it belongs to the loop that serves it."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._together = Together(self._take_many, most=MOST, gather=GATHER_SECONDS)

    async def take(self, asked: Asked) -> Answer:
        """What became of a body, and the task as it is shown. Raises what intake and its limits raise."""
        if asked.alone or self._board.settings.intake_rate:
            return await in_thread(lambda: self._take(asked))
        return await self._together.ask(asked)

    def _take_many(self, batch: Sequence[Asked]) -> list[Answer | Exception]:
        if len(batch) > 1:
            try:
                return self._in_one_go(batch)
            except Exception as error:
                if is_away(error):
                    return [error] * len(batch)
        # One of them, or one that spoils the others: each by itself.
        return [self._tried(asked) for asked in batch]

    def _tried(self, asked: Asked) -> Answer | Exception:
        try:
            return self._take(asked)
        except Exception as error:
            return error

    def _take(self, asked: Asked) -> Answer:
        board, by = self._board, asked.actor.by(CHANNEL)
        with board.db.read() as connection:
            row = board.intake.prepare(connection, asked.body, by, asked.idempotency_key, waited=asked.stays)
        with board.db.write() as tx:
            taken = board.intake.store(tx, [(asked.body, row)], by, asked.actor.may_operate)[0]
            board.intake_rate.charge(tx, asked.actor, int(taken.created))
            _follow(asked, taken)
        with board.db.read() as connection:
            return taken, self._answer(connection, asked, taken)

    def _in_one_go(self, batch: Sequence[Asked]) -> list[Answer | Exception]:
        board = self._board
        answers: dict[int, Answer | Exception] = {}
        rows: dict[int, dict[str, Any]] = {}
        with board.db.read() as connection:
            seen = board.intake.look(connection)
            for number, it in enumerate(batch):
                by = it.actor.by(CHANNEL)
                try:
                    rows[number] = board.intake.prepare(
                        connection, it.body, by, it.idempotency_key, waited=it.stays, seen=seen
                    )
                except EXPECTED as error:
                    answers[number] = error
        stored: dict[int, Taken] = {}
        with board.db.write() as tx:
            for actor, numbers in _by_actor(batch, rows).items():
                items = [(batch[number].body, rows[number]) for number in numbers]
                taken = board.intake.store(tx, items, actor.by(CHANNEL), actor.may_operate)
                stored.update(zip(numbers, taken, strict=True))
        for number, one in stored.items():
            _follow(batch[number], one)
        with board.db.read() as connection:
            answers |= self._answers(connection, batch, stored)
        return [answers[number] for number in range(len(batch))]

    def _answers(
        self, connection: Any, batch: Sequence[Asked], stored: dict[int, Taken]
    ) -> dict[int, Answer | Exception]:
        """The tasks as each caller may see them, read and written once for all."""
        found = find_all(connection, {taken.task_id for taken in stored.values()})
        whole = self._board.task_documents(connection, list(found.values()))
        shown = dict(zip(found, whole, strict=True))
        answers: dict[int, Answer | Exception] = {}
        for number, taken in stored.items():
            row = found.get(taken.task_id)
            answers[number] = self._told(connection, batch[number], taken, row, shown.get(taken.task_id))
        return answers

    def _answer(self, connection: Any, asked: Asked, taken: Taken) -> dict[str, Any]:
        row = find(connection, taken.task_id) if taken.archived_status is None else None
        document = None if row is None else self._board.task_document(connection, row)
        answer = self._told(connection, asked, taken, row, document)
        if isinstance(answer, Exception):
            raise answer
        return answer[1]

    def _told(
        self, connection: Any, asked: Asked, taken: Taken, row: Any, document: dict[str, Any] | None
    ) -> Answer | Exception:
        """The task; only its ID and status where no more of it is left, or where it is somebody else's."""
        if taken.archived_status is not None:
            return taken, {"task_id": taken.task_id, "status": taken.archived_status}
        if row is None or document is None:  # archived since it was found
            return missing(connection, taken.task_id)
        if not asked.actor.may(Act.READ, own=row["requester"] == asked.actor.identity):
            return taken, {"task_id": taken.task_id, "status": row["status"]}
        asked.caller.seen = row["event_seq"]
        return taken, document


def _by_actor(batch: Sequence[Asked], numbers: Iterable[int]) -> dict[Actor, list[int]]:
    found: dict[Actor, list[int]] = {}
    for number in numbers:
        found.setdefault(batch[number].actor, []).append(number)
    return found


def _follow(asked: Asked, taken: Taken) -> None:
    """From now on the caller hears of the task, and misses nothing that happens after the commit."""
    if asked.stays and taken.id is not None:
        asked.caller.follow(taken.id)
