"""Watches one run over its event stream: passes on text and steps, keeps the run's id, knows when it is over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from board.ports import Answer, HttpError, Job, JsonObject, StreamedAnswer
from integrations.dify.client import PAUSED, Run, mapping_of, text_of
from integrations.dify.errors import FILES_LOST, ApiError, error_from, plain, read_error
from integrations.dify.human import without
from integrations.dify.jsontext import MAX_RAW_TEXT, loads_object, one_line
from integrations.dify.sse import Event, EventTooLarge, read_events

# Dify ids are UUIDs; what is longer is none and is not kept as a reference.
_MAX_ID = 200

# A loop may fail a hundred times; a person reads the first few.
MAX_STEP_ERRORS = 5


# A price outside of these is none; written out, 1e-99999 would fill pages.
LEAST_PRICE, MOST_PRICE = Decimal("1e-12"), Decimal("1e9")
CURRENCIES = 3  # of one run


class CutShort(Exception):
    """The answer ended without saying how the run ended. The message is a plain clause."""


@dataclass(slots=True)
class LiveRun:
    """What has been seen of the run so far; `watch` fills it, also when it ends with an exception."""

    job: Job
    run_id: str | None = None
    started: bool = False  # an event of the run was seen
    texts: list[str] = field(default_factory=list)
    length: int = 0  # of the texts together, as far as they are kept
    step_errors: list[str] = field(default_factory=list)
    answered: bool = False  # `on_form` has answered a form
    with_files: bool = False  # files of the app were sent with the request
    forms: list[JsonObject] = field(default_factory=list)  # that wait for a person
    on_form: Callable[[JsonObject], Awaitable[bool]] | None = None  # answers a form; False: it is not that one's answer
    task_id: str = ""  # what the stop call needs
    prices: dict[str, Decimal] = field(default_factory=dict)  # by currency

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def cost(self) -> str | None:
        """What the models have cost, such as "0.0021 USD"; None where Dify names no price."""
        spent = [f"{price.normalize():f} {currency}" for currency, price in sorted(self.prices.items()) if price]
        return " + ".join(spent) or None

    async def watch(self, answer: StreamedAnswer, *, only_start: bool = False) -> Run | None:
        """The settled run. Raises ApiError for an error answer or event, CutShort or Lost when the end was not seen.

        only_start: None as soon as the run is known to go on by itself.
        """
        await self._keep(answer.headers.get("x-workflow-run-id", ""))
        kind = answer.headers.get("content-type", "").lower()
        if not 200 <= answer.status < 300:
            raise read_error(Answer(answer.status, answer.headers, await _rest(answer)))
        if "html" in kind:
            raise ApiError(status=answer.status)
        if "json" in kind:
            return await self._whole(await answer.read())
        return await self._events(answer, only_start)

    async def _events(self, answer: StreamedAnswer, only_start: bool) -> Run | None:
        try:
            async with aclosing(read_events(answer.chunks())) as events:
                async for event in events:
                    run = await self._take(event)
                    if run is not None or (only_start and self.started):
                        return run
        except EventTooLarge as error:
            raise CutShort(str(error)) from None
        raise CutShort("the stream ended without telling how the run ended")

    async def _whole(self, body: bytes) -> Run:
        """An answer in one piece: to a blocking call, or 202 while Dify moves its workers."""
        said = loads_object(body.decode("utf-8", errors="replace"))
        if said is None:
            raise CutShort("the answer is not whole")
        if "code" in said and "message" in said:
            raise error_from(said)
        self.task_id = self.task_id or text_of(said, "task_id")
        await self._keep(text_of(said, "workflow_run_id"))
        return await self._whole_of(said)

    async def _whole_of(self, said: JsonObject) -> Run:
        run = Run.read(mapping_of(said, "data"), self.run_id or "")
        self.forms = list(reasons_of(mapping_of(said, "data")))
        if not run.settled:
            raise CutShort("the answer came before the run ended")
        return run

    async def _take(self, event: Event) -> Run | None:
        """Handle one event; the run when it is settled by it. Events that are not known mean nothing."""
        message = loads_object(event.data) if event.data else None
        if message is None:
            return None  # a ping, or data that was cut
        self.task_id = self.task_id or text_of(message, "task_id")
        await self._keep(text_of(message, "workflow_run_id"))
        self.started = self.started or self.run_id is not None
        return await self._hear(message)

    async def _hear(self, message: JsonObject) -> Run | None:
        data = mapping_of(message, "data")
        match message.get("event"):
            case "workflow_started":
                self._check_files(data)
            case "text_chunk":
                await self._text(text_of(data, "text"))
            case "text_replace":
                self.texts = [text_of(data, "text")[: MAX_RAW_TEXT + 1]]
                self.length = len(self.texts[0])
            case "node_started":
                if title := text_of(data, "title"):
                    await self.job.progress(message=one_line(title, 200))
            case "node_finished":
                self._step(data)
            case "workflow_finished":
                run = Run.read(data, self.run_id or "")
                if not run.settled:
                    raise CutShort("the closing event does not say how the run ended")
                return run
            case "human_input_required":
                await self._form(data)
            case "human_input_form_filled" | "human_input_form_timeout":
                self.forms = without(self.forms, data)
            case "workflow_paused":
                return self._paused(data)
            case "error":
                # Dify keeps the stream open after it, with pings, for another five minutes.
                raise error_from(message)
        return None

    async def _text(self, piece: str) -> None:
        if piece:
            if self.length <= MAX_RAW_TEXT:
                self.texts.append(piece)
                self.length += len(piece)
            await self.job.text(piece)

    def _price(self, metadata: JsonObject) -> None:
        """Add what one model call has cost: `total_price` in `currency`."""
        currency = text_of(metadata, "currency").strip()
        try:
            price = Decimal(str(metadata.get("total_price") or 0))
        except InvalidOperation:
            return
        known = currency in self.prices or (currency.isalpha() and len(currency) <= 8 and len(self.prices) < CURRENCIES)
        if known and price.is_finite() and (price == 0 or LEAST_PRICE <= price <= MOST_PRICE):
            self.prices[currency] = self.prices.get(currency, Decimal(0)) + price

    def _check_files(self, data: JsonObject) -> None:
        """Some releases go on without files that they could not take, and say nothing."""
        if self.with_files and mapping_of(data, "inputs").get("sys.files") == []:
            raise ApiError(400, FILES_LOST)

    async def _form(self, data: JsonObject) -> None:
        if self.on_form is None or not await self.on_form(data):
            self.forms = [*without(self.forms, data), data]
        else:
            self.answered = True

    def _paused(self, data: JsonObject) -> Run | None:
        """The run waits for a person; None where its only form was just answered, and it is about to go on."""
        if self.answered and not self.forms:
            return None
        run = Run.read({**data, "status": PAUSED, "id": self.run_id})
        self.forms = self.forms or list(reasons_of(data))
        return run

    def _step(self, data: JsonObject) -> None:
        self._price(mapping_of(data, "execution_metadata"))
        error = text_of(data, "error")
        if error and len(self.step_errors) < MAX_STEP_ERRORS and text_of(data, "status") in ("failed", "exception"):
            step = text_of(data, "title") or text_of(data, "node_id") or "a step"
            self.step_errors.append(f"{one_line(step, 80)}: {plain(error) or 'failed'}")

    async def _keep(self, run_id: str) -> None:
        run_id = run_id.strip()
        if run_id and run_id != self.run_id and len(run_id) <= _MAX_ID and run_id.isprintable():
            self.run_id = run_id
            await self.job.reference(run_id)


def reasons_of(data: JsonObject) -> tuple[JsonObject, ...]:
    """The forms for which a run is paused, as a blocking answer or `workflow_paused` tells them."""
    reasons = data.get("reasons")
    return tuple(it for it in reasons if isinstance(it, dict)) if isinstance(reasons, list) else ()


async def _rest(answer: StreamedAnswer) -> bytes:
    try:
        return await answer.read()
    except HttpError:
        return b""  # the status alone says enough
