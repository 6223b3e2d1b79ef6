"""From a run that has ended to the board's outcome."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from board.ports import AskReason, Cause, ErrorClass, Failure, Json, JsonObject, Outcome, Success
from integrations.dify.answers import BadSchema, find_in_outputs, is_empty, shape
from integrations.dify.client import Client, Run
from integrations.dify.errors import plain, run_error
from integrations.dify.jsontext import MAX_RAW_TEXT, clean_text, is_finite, leaves, without_nonfinite


def outcome_of(
    run: Run,
    client: Client,
    output_schema: JsonObject | None,
    *,
    streamed: str = "",
    step_errors: Sequence[str] = (),
    cost: str | None = None,
) -> Outcome:
    """What the board settles the attempt with. run: one that has ended.

    streamed: the model's text as it came, kept as raw text. step_errors: "step: error" of nodes that failed. cost: as
    in ports.Success.
    """
    ended = _ended(run, client, output_schema, streamed, step_errors)
    return replace(ended, tokens=run.total_tokens, cost=cost)


def _ended(
    run: Run, client: Client, output_schema: JsonObject | None, streamed: str, step_errors: Sequence[str]
) -> Success | Failure:
    if run.status == "failed":
        return client.failure(run_error(run.error or "; ".join(step_errors)))
    if run.status == "stopped":
        # Dify writes the same words when somebody stopped the run and when its own time limit did.
        return Failure(
            ErrorClass.PERMANENT,
            Cause.UNKNOWN,
            "The run was stopped in Dify, by a person or by its time limit. Requeue the task to run it again."
            + (f" Dify says: {client.told(run.error)}" if run.error else ""),
            code="workflow_stopped",
        )
    assert run.status in ("succeeded", "partial-succeeded"), run.status
    outcome = read_outputs(run.outputs, output_schema, streamed)
    if isinstance(outcome, Success):
        outcome = replace(outcome, reference=run.id or None)
    if run.status == "partial-succeeded" and isinstance(outcome, Success):
        told = client.told("; ".join(step_errors) or run.error or "a step failed and its fallback was used")
        message = f"Dify finished in part: {told}. {outcome.ask_message or ''}".strip()
        return replace(outcome, ask="partial_result", ask_message=message)
    return outcome


def read_outputs(outputs: Json, output_schema: JsonObject | None, streamed: str = "") -> Success | Failure:
    """What a run gave, as the result that the type asks for; a person is asked where it is none."""
    result, raw_text = outputs, streamed
    ask: AskReason | None = None
    message: str | None = None
    if is_empty(outputs):
        ask, message = "empty_output", "Dify finished without any text or value in its outputs."
    else:
        try:
            found = _asked_for(outputs, output_schema)
        except BadSchema as error:
            return Failure(
                ErrorClass.PERMANENT,
                Cause.PRECONDITION,
                f"The task type's `output_schema` cannot be used: {plain(str(error))}. Correct the type and requeue.",
                raw_text=_cut(_raw(outputs)),
            )
        if found is None:
            ask, message = "invalid_output", "The answer has not the form that the type's `output_schema` asks for."
            if not is_finite(outputs):
                message = "The answer holds a number that JSON does not know (NaN or Infinity)."
            result, raw_text = without_nonfinite(outputs), _raw(outputs)
        else:
            result, raw_text = found[0], found[1] or streamed
    return Success(
        result=result,
        raw_text=_cut(raw_text) or None,
        ask=ask,
        ask_message=message,
    )


def _asked_for(outputs: Json, output_schema: JsonObject | None) -> tuple[Json, str] | None:
    """The value of the asked shape and the text that held it, empty where it is the outputs themselves."""
    if output_schema is None:
        return (outputs, "") if is_finite(outputs) else None
    fits = shape(output_schema)
    return (outputs, "") if fits(outputs) else find_in_outputs(outputs, fits)


def _raw(outputs: Json) -> str:
    """What the model wrote: the text where the outputs are nothing else, or all of them as JSON."""
    found = leaves(outputs)
    return found[0] if len(found) == 1 and isinstance(found[0], str) else json.dumps(outputs, ensure_ascii=False)


def _cut(text: str) -> str:
    text = clean_text(text)
    return text if len(text) <= MAX_RAW_TEXT else text[:MAX_RAW_TEXT] + "…"
