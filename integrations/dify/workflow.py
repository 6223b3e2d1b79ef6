"""The handler `dify.workflow`: one task, one run of a Dify workflow app, followed to its end whatever breaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from board.ports import (
    AlreadyConfirmed,
    Cause,
    ConnectionUser,
    ConnectionView,
    ErrorClass,
    Failure,
    Http,
    Job,
    JsonObject,
    Later,
    Lost,
    NotSent,
    NotStarted,
    OperationBusy,
    OperationConflict,
    Outcome,
    Refused,
    SentOperation,
    Tried,
    UnknownOutcome,
)
from integrations.dify.client import BadConnection, Client, Run
from integrations.dify.errors import ApiError
from integrations.dify.follow import Deadline, Pace, Search
from integrations.dify.inputs import Forms
from integrations.dify.jsontext import clean
from integrations.dify.live import CutShort, LiveRun
from integrations.dify.look import look
from integrations.dify.outcomes import outcome_of


class Workflow:
    """Runs a workflow app in streaming mode. Options: `workflow_id`, a published version to pin."""

    name = "dify.workflow"
    connection_kind: str | None = "dify"
    side_effects = False
    options = ("workflow_id",)

    def __init__(self, pace: Pace | None = None) -> None:
        self._pace = pace or Pace()
        self._forms = Forms()

    def check(self, handler: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        """Problems of a type's handler block."""
        problems = []
        inputs = handler.get("inputs")
        if inputs is not None and not isinstance(inputs, Mapping):
            problems.append(("inputs", "must be an object: a name of the app's start form, then its value"))
        version = handler.get("workflow_id")
        if version is not None and (not isinstance(version, str) or not version.strip()):
            problems.append(("workflow_id", "must be the id of a published version, as text"))
        return problems

    async def run(self, job: Job) -> Outcome:
        """Start a run and follow it. The wire user is the attempt's own, so that a lost run can be found again."""
        deadline = Deadline(job.timeout)
        client = _client(job)
        if isinstance(client, Failure):
            return client
        try:
            async with asyncio.timeout_at(deadline.at):
                request = await self._request(job, client)
        except TimeoutError:
            return Failure(ErrorClass.TRANSIENT, Cause.TIMEOUT, "Dify did not answer in time; nothing was sent.")
        except Refused as error:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error))
        if isinstance(request, Failure):
            return request

        try:
            body = await job.send(kind="dify.run", target=f"Dify app “{client.name}”", request=_encode(request))
        except OperationBusy as error:
            return Later(str(error), error.seconds)
        except OperationConflict as error:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error), open_operation=error.unknown)
        except AlreadyConfirmed as error:
            return await self._done_before(Search(job, client, deadline, job.user, self._pace), error.reference)
        search = Search(job, client, deadline, job.user, self._pace)
        live = LiveRun(job)
        doubt: Failure
        try:
            async with asyncio.timeout_at(deadline.at):
                async with client.run(body, job.options.get("workflow_id")) as answer:
                    run = await live.watch(answer)
            return outcome_of(run, client, job.output_schema, streamed=live.text, step_errors=live.step_errors)
        except TimeoutError:
            return search.still_open(live.run_id)
        except NotSent as error:
            return Failure(ErrorClass.TRANSIENT, Cause.NETWORK, f"Dify cannot be reached, nothing was sent: {error}")
        except Refused as error:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error))
        except ApiError as error:
            doubt = client.failure(error)
            if not error.unsure or (doubt.error_class is ErrorClass.PERMANENT and error.status != 200):
                return doubt
        except (Lost, CutShort) as error:
            doubt = Failure(ErrorClass.TRANSIENT, Cause.NETWORK, f"Dify's answer was lost: {str(error).rstrip('.')}.")
        return await self._find_out(search, live, doubt)

    async def reconcile(self, job: Job, operation: SentOperation) -> Outcome | NotStarted:
        """What became of an earlier attempt's run: by its id, else by that attempt's user in the run log."""
        deadline = Deadline(job.timeout)
        client = _client(job)
        if isinstance(client, Failure):
            return replace(client, open_operation=True)
        search = Search(job, client, deadline, operation.user, self._pace, operation.sent_at)
        found = await search.outcome(operation.reference)
        return outcome_of(found, client, job.output_schema) if isinstance(found, Run) else found

    async def test(self, connection: ConnectionView, http: Http, users: Sequence[ConnectionUser]) -> Sequence[Tried]:
        """Look at a connection: ports.Tester."""
        return await look(connection, http, users)

    async def _request(self, job: Job, client: Client) -> JsonObject | Failure:
        """The request's body, its inputs checked against the app's start form; or why it cannot be sent."""
        assert job.connection is not None
        inputs = clean(job.inputs)
        # Without `handler.inputs` the whole payload is offered, and the form takes what it knows.
        strict = job.inputs != job.payload
        fitted = await self._forms.fit(client, job.connection, inputs, use=self.name, strict=strict)
        if isinstance(fitted, Failure):
            return fitted
        try:
            _encode(fitted.inputs)
        except ValueError:
            return Failure(
                ErrorClass.PERMANENT,
                Cause.PRECONDITION,
                "Nothing was sent to Dify: `handler.inputs` hold a number that JSON does not know (NaN or Infinity).",
            )
        return {"inputs": fitted.inputs, "response_mode": "streaming", "user": job.user}

    async def _done_before(self, search: Search, run_id: str | None) -> Outcome:
        """The board's books say that this action was done: its run's result is taken, none is started."""
        found = await search.outcome(run_id) if run_id else None
        if isinstance(found, Run):
            return outcome_of(found, search.client, search.job.output_schema)
        if isinstance(found, Failure):
            return replace(found, open_operation=False)
        return Failure(
            ErrorClass.PERMANENT,
            Cause.PRECONDITION,
            "This was already judged, and Dify does not show that run any more. Make a new task to judge it again.",
        )

    async def _find_out(self, search: Search, live: LiveRun, doubt: Failure) -> Outcome:
        """The stream did not tell how it ended: ask, and only where there is no run say that it failed."""
        found = await search.outcome(live.run_id)
        if isinstance(found, Run):
            return outcome_of(
                found, search.client, search.job.output_schema, streamed=live.text, step_errors=live.step_errors
            )
        if isinstance(found, NotStarted):
            return replace(doubt, message=f"{doubt.message} {found.message}")
        if isinstance(found, UnknownOutcome) and live.text:
            return replace(found, raw_text=live.text)
        return found


def _client(job: Job) -> Client | Failure:
    if job.connection is None:
        return Failure(
            ErrorClass.PERMANENT, Cause.PRECONDITION, "The task type names no connection: set `handler.connection`."
        )
    try:
        return Client(job.http, job.connection)
    except BadConnection as error:
        return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error))


def _encode(value: JsonObject) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
