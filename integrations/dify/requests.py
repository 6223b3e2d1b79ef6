"""What the requests of all kinds of apps have in common."""

from __future__ import annotations

import json

from board.ports import Cause, ErrorClass, Failure, Job, Json, JsonObject
from integrations.dify.client import BadConnection, Client
from integrations.dify.files import BadFile, file_item


def silence_of(job: Job) -> float | None:
    """How long the line may be silent, in seconds: a blocking answer comes in one piece, at its end."""
    return job.timeout if job.wait == "blocking" else None


def app_files(given: Json) -> JsonObject | Failure:
    """`files` of the request: those of the app itself, beside its form."""
    if not given:
        return {}
    try:
        return {"files": [file_item(item) for item in (given if isinstance(given, list) else [given])]}
    except BadFile as error:
        return not_sent(f"`files` {error}")


def not_sent(problem: str) -> Failure:
    """Nothing was sent, because the type or the payload is wrong. problem: a clause."""
    message = f"Nothing was sent to Dify: {problem}. Correct `handler.inputs` of the task type or the payload."
    return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, message, code="inputs")


def client_of(job: Job) -> Client | Failure:
    """The client of the job's connection, or why there is none."""
    if job.connection is None:
        return Failure(
            ErrorClass.PERMANENT, Cause.PRECONDITION, "The task type names no connection: set `handler.connection`."
        )
    try:
        return Client(job.http, job.connection)
    except BadConnection as error:
        return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error))


def lost(why: str) -> Failure:
    """The answer was lost, and it was found out that nothing goes on. why: a clause."""
    return Failure(ErrorClass.TRANSIENT, Cause.NETWORK, f"Dify's answer was lost: {why.rstrip('.')}.")


def encode(value: JsonObject) -> bytes:
    """The body of a request. Raises ValueError for numbers that JSON does not know."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
