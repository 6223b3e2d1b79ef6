"""The handlers `dify.chat` and `dify.completion`: one task, one message to a chat-type app or a text generator.

Both go the way of `dify.workflow`; only the call, the events, the look-up and the shape of the result are others.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime

from board.ports import (
    Failure,
    Job,
    Json,
    JsonObject,
    Outcome,
    SentOperation,
    StreamedAnswer,
    Success,
)
from integrations.dify.app import App
from integrations.dify.client import Client, Run, text_of
from integrations.dify.follow import Deadline, Search
from integrations.dify.inputs import Fitted
from integrations.dify.jsontext import clean
from integrations.dify.live import LiveRun
from integrations.dify.requests import app_files, not_sent, silence_of
from integrations.dify.talk import LiveTalk
from integrations.dify.talk_search import NoSearch, TalkSearch

MOST_USER = 255  # characters; Dify's database column


class Chat(App):
    """Says one thing to a chatbot, agent or chatflow.

    Of its inputs `query` is what is said; `files` go with it. A conversation goes on where `conversation_id` and the
    `user` that began it are given. Options: `workflow_id`, a published version of a chatflow.
    """

    name = "dify.chat"
    kind = "dify.chat"
    beside: Collection[str] = ("query", "files", "conversation_id", "user")
    calls = "chat-messages"

    def _beside(self, fitted: Fitted, job: Job) -> JsonObject | Failure:
        given = _given(job)
        query = _text(given.get("query"))
        if not query.strip():
            return not_sent("a chat needs `query`, the text that is said, and it is missing or empty")
        conversation, user = _text(given.get("conversation_id")), _text(given.get("user"))
        if conversation and not user:
            return not_sent("a conversation goes on only for the `user` that began it: give `user` too")
        if len(user) > MOST_USER:
            return not_sent(f"`user` has {len(user)} characters; Dify takes {MOST_USER}")
        files = app_files(given.get("files"))
        if isinstance(files, Failure):
            return files
        more = {"conversation_id": conversation} if conversation else {}
        more |= {"user": user} if user else {}
        more |= {"workflow_id": job.options["workflow_id"]} if job.options.get("workflow_id") else {}
        # Dify would pay a model for a name that nobody reads.
        return {"query": query, "auto_generate_name": False, **more, **files}

    def _open(self, client: Client, job: Job, body: bytes) -> AbstractAsyncContextManager[StreamedAnswer]:
        return client.start(f"/{self.calls}", body, silence_of(job))

    def _live(self, job: Job) -> LiveRun:
        return LiveTalk(job)

    def _search(self, job: Job, client: Client, deadline: Deadline, operation: SentOperation | None = None) -> Search:
        given = _given(job)
        user = _text(given.get("user")) or (operation.user if operation else job.user)
        search = TalkSearch(
            job, client, deadline, user, self._pace, operation.sent_at if operation else datetime.now(UTC)
        )
        search.conversation, search.query = _text(given.get("conversation_id")), _text(given.get("query"))
        return search

    def _outcome(self, search: Search, live: LiveRun, run: Run) -> Outcome:
        """The answer is judged by itself; the ids of the talk stand beside it where the result is the plain answer."""
        assert isinstance(live, LiveTalk)
        ids = live.ids | {
            name: found for name in ("conversation_id", "message_id") if (found := text_of(run.outputs, name))
        }
        answer = {"answer": text_of(run.outputs, "answer") or live.text}
        outcome = super()._outcome(search, live, replace(run, outputs=answer))
        if isinstance(outcome, Success) and outcome.result == answer:
            return replace(outcome, result=answer | ids)
        return outcome


class Completion(Chat):
    """Asks a text generator. Its inputs are those of the app's form; `query` and `files` go beside it."""

    name = "dify.completion"
    kind = "dify.completion"
    beside = ("query", "files")
    calls = "completion-messages"
    by_engine = False
    options = ()

    def _beside(self, fitted: Fitted, job: Job) -> JsonObject | Failure:
        files = app_files(fitted.beside.get("files"))
        if isinstance(files, Failure):
            return files
        query = _text(fitted.beside.get("query"))
        return ({"query": query} if query else {}) | files

    def _search(self, job: Job, client: Client, deadline: Deadline, operation: SentOperation | None = None) -> Search:
        return NoSearch(job, client, deadline, operation.user if operation else job.user, self._pace)


def _given(job: Job) -> JsonObject:
    """What the request itself takes. A payload that is offered whole names neither a user nor a conversation."""
    names = ("query", "files") if job.inputs == job.payload else Chat.beside
    return {name: clean(job.inputs[name]) for name in names if name in job.inputs}


def _text(value: Json) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
