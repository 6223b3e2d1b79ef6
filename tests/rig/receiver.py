"""A receiver of webhooks on a real loopback port, which answers as it is told: late, wrong, or not at all."""

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass(frozen=True)
class Received:
    """One request as it came. Header names are lower-case; `at` is `time.monotonic()` in seconds."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float


@dataclass(frozen=True)
class Reply:
    """How to answer one request.

    delay: seconds before the answer. drip: seconds between two bytes of the body. hang: never answer, the connection
    stays open. close: read the request, then close the connection without an answer. echo: answer with its own body.
    """

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    delay: float = 0.0
    drip: float = 0.0
    hang: bool = False
    close: bool = False
    echo: bool = False


class Receiver:
    """Records every request. `default` answers all of them; `reply` puts answers for the next ones before it.

    by_method: other defaults for some methods, such as {"GET": Reply(404)}.
    """

    def __init__(self) -> None:
        self.default = Reply()
        self.by_method: dict[str, Reply] = {}
        self.requests: list[Received] = []
        self._replies: deque[Reply] = deque()
        self._arrived = threading.Condition()
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def reply(self, *replies: Reply) -> None:
        """The answers to the next requests, in this order."""
        with self._arrived:
            self._replies.extend(replies)

    def wait_for(self, count: int, timeout: float = 15.0) -> list[Received]:
        """Wait until at least `count` requests have come; all that came. AssertionError after `timeout` seconds."""
        with self._arrived:
            enough = self._arrived.wait_for(lambda: len(self.requests) >= count, timeout)
            came = list(self.requests)
        assert enough, f"{len(came)} of {count} requests came in {timeout} s: {[f'{r.method} {r.path}' for r in came]}"
        return came

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def record(self, request: Received) -> Reply:
        """Called by the server's threads."""
        with self._arrived:
            default = self.by_method.get(request.method, self.default)
            reply = self._replies.popleft() if self._replies else default
            self.requests.append(request)
            self._arrived.notify_all()
        return replace(reply, body=request.body) if reply.echo else reply

    def pause(self, seconds: float | None) -> bool:
        """Wait, at most until the receiver is closed. True when it goes on."""
        return not self._closing.wait(seconds)


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = receiver.record(Received(self.command, self.path, headers, body, time.monotonic()))
            if reply.close or reply.hang or not receiver.pause(reply.delay):
                self.close_connection = True
                if reply.hang:
                    receiver.pause(None)
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            for chunk in [reply.body[i : i + 1] for i in range(len(reply.body))] if reply.drip else [reply.body]:
                if reply.drip and not receiver.pause(reply.drip):
                    return
                self.wfile.write(chunk)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = answer

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing: the requests are recorded."""

    return Handler


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver of webhooks; answers 200 until told otherwise."""
    server = Receiver()
    yield server
    server.close()
