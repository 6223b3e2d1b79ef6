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
    HttpError,
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
    Success,
    Tried,
    UnknownOutcome,
    Wait,
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
    """Runs a workflow app. Options: `workflow_id`, a published version to pin.

    wait: `stream` follows its events to the end; `blocking` holds the line for one answer; `callback` starts it and
    lets go of the line, until the workflow calls `callback.url` or its run is seen to have ended.
    """

    name = "dify.workflow"
    connection_kind: str | None = "dify"
    side_effects = False
    options = ("workflow_id",)
    waits: Sequence[Wait] = ("stream", "blocking", "callback")

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
                silence = job.timeout if job.wait == "blocking" else None
                async with client.run(body, job.options.get("workflow_id"), silence) as answer:
                    run = await live.watch(answer, only_start=job.wait == "callback")
            if run is None:
                assert live.run_id is not None
                waited = await self._await_callback(search, live.run_id, self._pace.look)
                return waited or await self._find_out(search, live, _lost("its run is not shown"))
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
            doubt = _lost(str(error))
        return await self._find_out(search, live, doubt)

    async def _await_callback(self, search: Search, run_id: str, look: float) -> Outcome | None:
        """The run goes on by itself. Its callback is the result; its detail tells when it has ended without one.

        look: seconds until the detail is first asked for. None: Dify does not show the run.
        """
        job, client = search.job, search.client
        while search.deadline.left() > 0:
            called = await job.called_back(min(look, search.deadline.left()))
            look, run = self._pace.look, None
            try:
                if called is None:
                    run = await client.run_detail(run_id)
            except HttpError:
                continue  # nothing is proven by it
            except ApiError as error:
                if error.unsure or error.status == 429:
                    continue
                return None
            if run is not None and run.settled:  # its last node may just be calling
                called = await job.called_back(self._pace.first)
            if called is not None:
                outcome = called.outcome()
                return replace(outcome, reference=run_id) if isinstance(outcome, Success) else outcome
            if run is not None and run.settled:
                return outcome_of(run, client, job.output_schema)
        return search.still_open(run_id)

    async def reconcile(self, job: Job, operation: SentOperation) -> Outcome | NotStarted:
        """What became of an earlier attempt's run: by its callback, by its id, else by its user in the run log."""
        called = await job.called_back(0) if job.wait == "callback" else None
        if called is not None:
            return called.outcome()
        deadline = Deadline(job.timeout)
        client = _client(job)
        if isinstance(client, Failure):
            return replace(client, open_operation=True)
        search = Search(job, client, deadline, operation.user, self._pace, operation.sent_at)
        if job.wait == "callback" and operation.reference is not None:
            waited = await self._await_callback(search, operation.reference, 0)
            if waited is not None:
                return waited
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
        mode = "blocking" if job.wait == "blocking" else "streaming"
        return {"inputs": fitted.inputs, "response_mode": mode, "user": job.user}

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


def _lost(why: str) -> Failure:
    return Failure(ErrorClass.TRANSIENT, Cause.NETWORK, f"Dify's answer was lost: {why.rstrip('.')}.")


def _encode(value: JsonObject) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
