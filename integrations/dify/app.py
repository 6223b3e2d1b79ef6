"""One task, one run of a Dify app, followed to its end whatever breaks: what `dify.workflow` and its like share."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from typing import Any

from board.ports import (
    CANCELLED,
    AlreadyConfirmed,
    CalledBack,
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
    StreamedAnswer,
    Tried,
    UnknownOutcome,
    Wait,
    Withdrawn,
)
from integrations.dify.call_off import call_off
from integrations.dify.calling_back import first_word, outcome_of_call
from integrations.dify.client import PAUSED, WORKFLOWS, BadConnection, Client, Run
from integrations.dify.errors import FILES_LOST, UPLOAD_LOST, ApiError
from integrations.dify.files import BadFile, uploaded
from integrations.dify.follow import Deadline, Pace, Search
from integrations.dify.human import FormRefused, needs_input
from integrations.dify.inputs import Fitted, Forms
from integrations.dify.jsontext import clean
from integrations.dify.live import CutShort, LiveRun
from integrations.dify.look import look
from integrations.dify.modes import cannot_block
from integrations.dify.outcomes import outcome_of
from integrations.dify.requests import app_files, client_of, encode, lost, not_sent, silence_of
from integrations.dify.watching import watch_again

STOP_SECONDS = 3.0  # a worker that goes down waits no longer for a cancelled attempt


class App:
    """What the handlers of all kinds of apps have in common. Options: `workflow_id`, a published version to pin, and
    `cancel_action`, the action of the app's forms that is taken when the task is cancelled."""

    name: str
    connection_kind: str | None = "dify"
    side_effects = False
    options: Sequence[str] = ("workflow_id", "cancel_action")
    waits: Sequence[Wait] = ("stream", "blocking")
    kind: str  # of the operation
    calls = WORKFLOWS  # the calls that stop it
    beside: Collection[str] = ("files",)  # names in `handler.inputs` that the request itself takes
    by_engine = True  # runs can be watched again; where the app is of another kind, Dify says so

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
        action = handler.get("cancel_action")
        if action is not None and (not isinstance(action, str) or not action.strip()):
            problems.append(("cancel_action", "must be the id of an action of the app's form, as text"))
        return problems

    async def run(self, job: Job) -> Outcome:
        """Start a run and follow it. The wire user is the attempt's own, so that a lost run can be found again."""
        deadline = Deadline(job.timeout)
        client = client_of(job)
        if isinstance(client, Failure):
            return client
        outcome = await self._ask(job, client, deadline)
        if isinstance(outcome, Failure) and outcome.rule == UPLOAD_LOST and not outcome.open_operation:
            return await self._ask(job, client, deadline)  # its files are uploaded once more
        return outcome

    async def _ask(self, job: Job, client: Client, deadline: Deadline) -> Outcome:
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
            body = await job.send(kind=self.kind, target=f"Dify app “{client.name}”", request=encode(request))
        except OperationBusy as error:
            return Later(str(error), error.seconds)
        except OperationConflict as error:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error), open_operation=error.unknown)
        except AlreadyConfirmed as error:
            return await self._done_before(self._search(job, client, deadline), error.reference)
        search = self._search(job, client, deadline)
        live = self._live(job)
        live.with_files = bool(request.get("files"))
        doubt: Failure
        try:
            async with asyncio.timeout_at(deadline.at):
                async with self._open(client, job, body) as answer:
                    run = await live.watch(answer, only_start=job.wait == "callback")
            if run is None:  # it goes on by itself
                return await self._find_out(search, live, lost("its run is not shown"))
            return await self._concluded(search, live, run)
        except asyncio.CancelledError as error:
            if CANCELLED in error.args and live.task_id:
                await self._stop(client, live, search.user)
            raise
        except TimeoutError:
            return search.still_open(live.run_id)
        except NotSent as error:
            return Failure(ErrorClass.TRANSIENT, Cause.NETWORK, f"Dify cannot be reached, nothing was sent: {error}")
        except Refused as error:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error))
        except ApiError as error:
            doubt = client.failure(error)
            if error.code == FILES_LOST:
                await self._stop(client, live, search.user)
            if not error.unsure or (doubt.error_class is ErrorClass.PERMANENT and error.status != 200):
                return doubt
        except (Lost, CutShort) as error:
            doubt = lost(str(error))
        return await self._find_out(search, live, doubt)

    async def reconcile(self, job: Job, operation: SentOperation) -> Outcome | NotStarted:
        """What became of an earlier attempt's run: by its callback, by its id, else by its user in the run log."""
        called = await job.called_back(0) if job.wait == "callback" else None
        if called is not None:
            return outcome_of_call(called, job, operation.reference)
        deadline = Deadline(job.timeout)
        client = client_of(job)
        if isinstance(client, Failure):
            return replace(client, open_operation=True)
        search = self._search(job, client, deadline, operation)
        return await self._resumed(search, operation)

    async def withdraw(
        self, connection: ConnectionView, operation: SentOperation, options: Mapping[str, Any], http: Http
    ) -> Withdrawn:
        """Stop what a cancelled task has left going on: ports.Withdrawer."""
        try:
            client = Client(http, connection)
        except BadConnection as error:
            return Withdrawn(f"What was begun in Dify could not be stopped. {error}")
        return await call_off(client, operation, self.calls, options.get("cancel_action"), self._pace.first)

    async def test(self, connection: ConnectionView, http: Http, users: Sequence[ConnectionUser]) -> Sequence[Tried]:
        """Look at a connection: ports.Tester."""
        return await look(connection, http, users)

    async def _request(self, job: Job, client: Client) -> JsonObject | Failure:
        """The request's body, its inputs checked against the app's start form; or why it cannot be sent."""
        assert job.connection is not None
        inputs = clean(job.inputs)
        # Without `handler.inputs` the whole payload is offered, and the form takes what it knows.
        strict = job.inputs != job.payload
        fitted = await self._forms.fit(client, job.connection, inputs, use=self.name, strict=strict, beside=self.beside)
        if isinstance(fitted, Failure):
            return fitted
        beside = self._beside(fitted, job)
        if isinstance(beside, Failure):
            return beside
        mode = "blocking" if job.wait == "blocking" else "streaming"
        if mode == "blocking" and (refused := cannot_block(fitted.mode)) is not None:
            return refused
        request: JsonObject = {"inputs": fitted.inputs, "response_mode": mode, "user": job.user} | beside
        try:
            request = await uploaded(client, request["user"], request, job.files)
        except BadFile as error:
            return not_sent(f"a file {error}")
        except ApiError as error:
            return client.failure(error)
        except (NotSent, Lost) as error:
            message = f"A file could not be uploaded to Dify, nothing was started: {error}"
            return Failure(ErrorClass.TRANSIENT, Cause.NETWORK, message)
        try:
            encode(request)
        except ValueError:
            return Failure(
                ErrorClass.PERMANENT,
                Cause.PRECONDITION,
                "Nothing was sent to Dify: `handler.inputs` hold a number that JSON does not know (NaN or Infinity).",
            )
        return request

    # -- what other kinds of apps do in their own way -----------------------------------------------------------------

    def _beside(self, fitted: Fitted, job: Job) -> JsonObject | Failure:
        """What stands beside `inputs` in the request."""
        return app_files(fitted.beside.get("files"))

    def _open(self, client: Client, job: Job, body: bytes) -> AbstractAsyncContextManager[StreamedAnswer]:
        return client.run(body, job.options.get("workflow_id"), silence_of(job))

    def _live(self, job: Job) -> LiveRun:
        return LiveRun(job)

    def _search(self, job: Job, client: Client, deadline: Deadline, operation: SentOperation | None = None) -> Search:
        """operation: an earlier attempt's call; left out, this attempt's own."""
        if operation is None:
            return Search(job, client, deadline, job.user, self._pace)
        return Search(job, client, deadline, operation.user, self._pace, operation.sent_at)

    def _outcome(self, search: Search, live: LiveRun, run: Run) -> Outcome:
        return outcome_of(
            run,
            search.client,
            search.job.output_schema,
            streamed=live.text,
            step_errors=live.step_errors,
            cost=live.cost,
        )

    async def _stop(self, client: Client, live: LiveRun, user: str) -> None:
        """Tell Dify that nobody wants it any more. It always says yes; nothing is believed and nothing hangs on it."""
        with suppress(ApiError, HttpError):
            await client.stop(live.task_id, user, within=STOP_SECONDS, kind=self.calls)

    async def _done_before(self, search: Search, run_id: str | None) -> Outcome:
        """The board's books say that this action was done: its run's result is taken, none is started."""
        found = await search.outcome(run_id) if run_id else None
        if isinstance(found, Run):
            return await self._concluded(search, self._live(search.job), found)
        if isinstance(found, Failure):
            return replace(found, open_operation=False)
        return Failure(
            ErrorClass.PERMANENT,
            Cause.PRECONDITION,
            "This was already judged, and Dify does not show that run any more. Make a new task to judge it again.",
        )

    async def _resumed(self, search: Search, operation: SentOperation) -> Outcome | NotStarted:
        """Follow the run of an earlier attempt to its end: over its events where it can be watched, else by asking.

        A person's answer to its form is given while its events are watched: what comes after it would else be lost.
        """
        live = self._live(search.job)
        run = None
        watches = search.job.wait != "callback" or operation.answer is not None
        if operation.reference is not None and self.by_engine and watches:
            try:
                run = await watch_again(search, live, operation.reference, self._stop, operation.answer)
            except FormRefused as error:
                return needs_input(Run(operation.reference, PAUSED, {}, None, None), live.forms, str(error))
        if run is None and live.answered:  # its detail may still say that it is paused
            return search.still_open(operation.reference)
        found = await first_word(search, operation.reference)  # the events may be a picture from before
        if isinstance(found, CalledBack):
            return outcome_of_call(found, search.job, operation.reference)
        return await self._concluded(search, live, found) if isinstance(found, Run) else found

    async def _concluded(self, search: Search, live: LiveRun, run: Run) -> Outcome:
        """The outcome of a settled run. One that waits for a person is asked for its forms, where none were seen."""
        if run.status != PAUSED:
            return self._outcome(search, live, run)
        if not live.forms and run.id:
            live = self._live(search.job)
            await watch_again(search, live, run.id, self._stop)
        return needs_input(run, live.forms)

    async def _find_out(self, search: Search, live: LiveRun, doubt: Failure) -> Outcome:
        """The stream did not tell how it ended: ask, and only where there is no run say that it failed."""
        found = await first_word(search, live.run_id)
        if isinstance(found, Run):
            return await self._concluded(search, live, found)
        if isinstance(found, CalledBack):
            return outcome_of_call(found, search.job, live.run_id)
        if isinstance(found, NotStarted):
            return replace(doubt, message=f"{doubt.message} {found.message}")
        if isinstance(found, UnknownOutcome) and live.text:
            return replace(found, raw_text=live.text)
        return found
