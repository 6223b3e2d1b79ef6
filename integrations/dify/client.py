"""Dify's service API, as far as the board needs it. One connection is one app: its key decides."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from board.ports import ConnectionView, Failure, Http, Json, JsonObject, StreamedAnswer
from integrations.dify.errors import ApiError, classify, hide, plain, read_error
from integrations.dify.jsontext import loads_object

ENDED = frozenset({"succeeded", "failed", "stopped", "partial-succeeded"})
PAUSED = "paused"
WORKFLOWS = "workflows/tasks"  # the calls that stop runs of a workflow app

MOST_TOKENS = 10**12  # of one run; no day of any provider has so many, and a database could not add them up

# Keep-alives come every 10 s. A minute without one means that the connection is dead.
STREAM_SILENCE = 60.0

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|)")
_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


class BadConnection(Exception):
    """The connection's settings cannot be used. The message is a plain sentence."""


class CannotLookUp(Exception):
    """The run log answers, but not what was asked: nothing is proven by it."""


@dataclass(frozen=True, slots=True)
class Run:
    """A workflow run as Dify shows it: in its detail, in the closing event of a stream, in a blocking answer."""

    id: str
    status: str
    outputs: Json
    error: str | None
    total_tokens: int | None

    @property
    def settled(self) -> bool:
        """True when waiting will not change it: it ended, or it waits for a person in Dify."""
        return self.status in ENDED or self.status == PAUSED

    @classmethod
    def read(cls, data: JsonObject, run_id: str = "") -> Run:
        outputs = data.get("outputs")
        if isinstance(outputs, str):  # some versions give the stored column, which is JSON text
            outputs = loads_object(outputs) or outputs
        error = data.get("error")
        return cls(
            id=text_of(data, "id") or run_id,
            status=text_of(data, "status"),
            outputs={} if outputs is None else outputs,
            error=error if isinstance(error, str) and error else None,
            total_tokens=tokens_of(data),
        )


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that goes to Dify with a run."""

    name: str
    mime_type: str
    content: bytes

    def as_form(self, boundary: str, user: str) -> bytes:
        """The body of a multipart form with exactly one file and the user."""
        name = "".join("_" if letter in '"\\\r\n' else letter for letter in self.name)
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="user"\r\n\r\n{user}\r\n--{boundary}\r\n'
        head += f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n'
        head += f"Content-Type: {self.mime_type}\r\n\r\n"
        return head.encode() + self.content + f"\r\n--{boundary}--\r\n".encode()


class Client:
    """Calls of one app. Every method raises ApiError for what is no success, and what `Http` raises.

    within: the longest time in seconds for one whole call.
    """

    def __init__(self, http: Http, connection: ConnectionView) -> None:
        key = re.sub(r"^bearer(\s+|$)", "", connection.secrets.get("key", "").strip(), flags=re.IGNORECASE)
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            raise BadConnection(
                f"The connection “{connection.name}” has no usable key: set `key` to the app's API key (app-…)."
            )
        self.name = connection.name
        self.grace = _seconds(connection, "grace", 60.0)
        self._http = http
        self._base = connection.url.rstrip("/")
        self._secrets = [key, *connection.secrets.values()]
        self._headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}

    def failure(self, error: ApiError, *, open_operation: bool = False) -> Failure:
        """The error as the board's failure, without the key."""
        return classify(error, self.name, self._secrets, open_operation=open_operation)

    def told(self, text: str) -> str:
        """Dify's own words for a message: short, on one line, without keys and pages."""
        return hide(plain(text), self._secrets)

    def run(
        self, body: bytes, workflow_id: str | None = None, silence: float | None = None
    ) -> AbstractAsyncContextManager[StreamedAnswer]:
        """Start a run and read its events. workflow_id: a published version; left out, the newest one."""
        path = f"/workflows/{quote(workflow_id, safe='')}/run" if workflow_id else "/workflows/run"
        return self.start(path, body, silence)

    def start(
        self, path: str, body: bytes, silence: float | None = None
    ) -> AbstractAsyncContextManager[StreamedAnswer]:
        """Start something by POST and read what comes.

        silence: the longest time without a byte, in seconds; left out, that of a stream with its keep-alives.
        """
        headers = {**self._headers, "Content-Type": "application/json", "Accept": "text/event-stream"}
        return self._http.stream(
            "POST", self._base + path, headers=headers, content=body, read_timeout=silence or STREAM_SILENCE
        )

    async def run_detail(self, run_id: str, within: float = 30.0) -> Run:
        """The run as it stands."""
        return Run.read(await self._get(f"/workflows/run/{quote(run_id, safe='')}", within=within), run_id)

    async def runs_of(self, user: str, after: datetime, within: float = 30.0) -> Sequence[Run]:
        """The runs that `user` started after a moment, newest first, from the run log (without their outputs).

        Raises CannotLookUp when the log does not know the filter: it would then show other people's runs.
        """
        query = {
            "created_by_end_user_session_id": user,
            "created_at__after": after.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "limit": "20",
            "page": "1",
        }
        rows = (await self._get("/workflows/logs", query, within)).get("data")
        if not isinstance(rows, list):
            raise CannotLookUp("the run log has another form than is known here")
        found = []
        for row in rows:
            run, starter = mapping_of(row, "workflow_run"), mapping_of(row, "created_by_end_user")
            if starter.get("session_id") != user:
                raise CannotLookUp("this version of Dify cannot search its run log by user")
            if text_of(run, "id"):
                found.append(Run.read(run))
        return found

    def events(self, run_id: str, user: str, *, past_pause: bool) -> AbstractAsyncContextManager[StreamedAnswer]:
        """Watch a run of this user again, from a picture of how it stands. past_pause: also while a person is asked."""
        query = urlencode(
            {"user": user, "include_state_snapshot": "true", "continue_on_pause": str(past_pause).lower()}
        )
        url = f"{self._base}/workflow/{quote(run_id, safe='')}/events?{query}"
        headers = {**self._headers, "Accept": "text/event-stream"}
        return self._http.stream("GET", url, headers=headers, read_timeout=STREAM_SILENCE)

    async def answer_form(self, token: str, body: bytes, within: float = 30.0) -> None:
        """Give the one answer to a Human Input form."""
        await self._call("POST", f"/form/human_input/{quote(token, safe='')}", body, within=within)

    async def stop(self, task_id: str, user: str, within: float = 15.0, kind: str = WORKFLOWS) -> None:
        """Ask Dify to stop a run. It answers success whatever happens: only the run's detail tells.

        kind: the calls that started it: workflows/tasks, chat-messages or completion-messages.
        """
        body = json.dumps({"user": user}).encode()
        await self._call("POST", f"/{kind}/{quote(task_id, safe='')}/stop", body, within=within)

    async def conversation_of(self, user: str, within: float = 30.0) -> str | None:
        """The conversation that this user has used last."""
        rows = (await self._get("/conversations", {"user": user, "limit": "1"}, within)).get("data")
        return next((text_of(row, "id") for row in rows), None) if isinstance(rows, list) else None

    async def messages_of(self, conversation: str, user: str, within: float = 30.0) -> Sequence[JsonObject]:
        """The last messages of a conversation, the newest first."""
        query = {"conversation_id": conversation, "user": user, "limit": "20"}
        rows = (await self._get("/messages", query, within)).get("data")
        found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        found.reverse()  # they come oldest first; equal times keep this order
        return sorted(found, key=lambda row: _number(row.get("created_at")), reverse=True)

    async def upload(self, file: Upload, user: str, within: float = 120.0) -> str:
        """Store a file for a run of the same user; its id."""
        boundary = f"board-{uuid.uuid4().hex}"
        body = file.as_form(boundary, user)
        kind = f"multipart/form-data; boundary={boundary}"
        stored = await self._call("POST", "/files/upload", body, within=within, content_type=kind)
        if not (found := text_of(stored, "id")):
            raise ApiError(status=200)
        return found

    async def welcome(self, within: float = 15.0) -> JsonObject:
        """What answers at the address itself, with `server_version`; it needs no key."""
        return await self._get("/", within=within)

    async def info(self, within: float = 15.0) -> JsonObject:
        """Name, description and mode of the app that the key belongs to."""
        return await self._get("/info", within=within)

    async def parameters(self, within: float = 15.0) -> JsonObject:
        """The app's start form (`user_input_form`) and features."""
        return await self._get("/parameters", within=within)

    async def _get(self, path: str, query: Mapping[str, str] | None = None, within: float = 30.0) -> JsonObject:
        return await self._call("GET", path + (f"?{urlencode(query)}" if query else ""), within=within)

    async def _call(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        *,
        within: float,
        content_type: str = "application/json",
    ) -> JsonObject:
        headers = {**self._headers, "Content-Type": content_type} if content is not None else self._headers
        answer = await self._http.request(method, self._base + path, headers=headers, content=content, timeout=within)
        body = loads_object(answer.text) if 200 <= answer.status < 300 else None
        if body is None:
            raise read_error(answer)
        return body


def mapping_of(value: Json, key: str) -> JsonObject:
    """The object under a key, empty where there is none: Dify's answers vary between versions."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def text_of(value: Json, key: str) -> str:
    """The text under a key, empty where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def tokens_of(value: JsonObject) -> int | None:
    """The `total_tokens` of a run or a message; None where that is no number that a model can have used."""
    tokens = value.get("total_tokens")
    return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens <= MOST_TOKENS else None


def _number(value: Json) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _seconds(connection: ConnectionView, option: str, default: float) -> float:
    match = _DURATION.fullmatch(str(connection.options.get(option, default)).strip())
    if match is None:
        raise BadConnection(
            f"`{option}` of the connection “{connection.name}” must be a number of seconds or a duration such as 60s."
        )
    return float(match[1]) * _UNITS[match[2]]
