"""Finds out what became of a message when the stream did not tell: by the history of its user.

Every attempt has a user of its own, so the user's only conversation is the attempt's. Where a conversation goes on, its
user stays the same; there the message is told by its words and its time. A chatflow's run is asked for by its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from board.ports import Cause, ErrorClass, Failure, JsonObject, Lost, NotSent, NotStarted, Refused, UnknownOutcome
from integrations.dify.client import PAUSED, Run, text_of
from integrations.dify.errors import ApiError
from integrations.dify.follow import CLOCK_MARGIN, Search
from integrations.dify.modes import RUN_BY_ENGINE

RUNNING = "running"


@dataclass(slots=True)
class TalkSearch(Search):
    """conversation: the one that goes on, empty for one of the attempt's own. query: what was said in it."""

    conversation: str = ""
    query: str = ""
    by_engine: bool | None = None  # None: not yet asked

    async def outcome(self, run_id: str | None) -> Run | NotStarted | Failure | UnknownOutcome:
        """As Search.outcome. run_id: of a chatflow's run, else of the message."""
        grace_end = self._grace_end()
        wait, trouble = self.pace.first, ""
        while True:
            pause = wait
            nothing_is_final = self._now() >= grace_end
            try:
                run = await self._look(run_id)
                if run is not None and run.settled:
                    return run
                if run is None and nothing_is_final:
                    if run_id is not None:
                        return UnknownOutcome(f"Dify does not show the message or run {run_id} any more.")
                    return NotStarted("Dify's history shows no message for this request.")
                if run is not None and not self.by_engine and self._age() > max(self.client.grace, self.job.timeout):
                    return UnknownOutcome(
                        "Dify shows the question without an answer. Apps of this kind lose an answer when the line "
                        "breaks while they write it."
                    )
                trouble = ""
                pause = self._not_past(pause, grace_end) if run is None else pause
            except Refused as error:
                return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error), open_operation=True)
            except (NotSent, Lost) as error:
                trouble = str(error)
            except ApiError as error:
                told = self.client.failure(error, open_operation=True)
                if told.cause is Cause.AUTH:
                    return told  # the key can be mended, and then the message be found
                if not error.unsure and error.status != 429:
                    return UnknownOutcome(f"Dify's answer was lost and its history cannot be read. {told.message}")
                trouble = told.message
                pause = max(pause, error.retry_after or 0.0)
            if not await self.deadline.sleep(pause):
                return self.still_open(run_id, trouble)
            wait = min(wait * 2, self.pace.cap)

    async def _look(self, run_id: str | None) -> Run | None:
        """What Dify shows now; None where it shows nothing."""
        within = self._patience()
        if self.by_engine is None:
            self.by_engine = text_of(await self.client.info(within=within), "mode") in RUN_BY_ENGINE
        try:
            if self.by_engine and run_id is not None:
                return await self.client.run_detail(run_id, within=within)
            conversation = self.conversation or await self.client.conversation_of(self.user, within=within)
            if not conversation:
                return None
            message = self._pick(await self.client.messages_of(conversation, self.user, within=within), run_id)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return None if message is None else _as_run(message, conversation)

    def _pick(self, messages: Sequence[JsonObject], message_id: str | None) -> JsonObject | None:
        if message_id is not None:
            return next((it for it in messages if text_of(it, "id") == message_id), None)
        if self.conversation:
            earliest = (self._sent_at() - CLOCK_MARGIN).timestamp()
            messages = [it for it in messages if it.get("query") == self.query and it.get("created_at", 0) >= earliest]
        return next(iter(messages), None)

    def _sent_at(self) -> datetime:
        return self.sent_at if self.sent_at.tzinfo else self.sent_at.replace(tzinfo=UTC)

    def _age(self) -> float:
        return (datetime.now(UTC) - self._sent_at()).total_seconds()


def _as_run(message: JsonObject, conversation: str) -> Run:
    answer, error = text_of(message, "answer"), text_of(message, "error")
    status = {"error": "failed", "paused": PAUSED}.get(text_of(message, "status"))
    if status is None:
        status = "succeeded" if answer else RUNNING  # the answer is saved whole, at its end
    ids = {"answer": answer, "conversation_id": conversation, "message_id": text_of(message, "id")}
    return Run(text_of(message, "id"), status, ids, error or None, None)


@dataclass(slots=True)
class NoSearch(Search):
    """Text generators: Dify has no call that shows what became of a request."""

    async def outcome(self, run_id: str | None) -> Run | NotStarted | Failure | UnknownOutcome:
        return UnknownOutcome(
            "Dify's answer was lost, and Dify cannot be asked what became of a request to a text generator. Where that "
            "matters, use a workflow app."
        )
