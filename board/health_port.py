"""The health port of a worker, which has no web server of its own: /healthz and /readyz, and nothing else."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from board.health import is_ready, readiness
from board.rooms import Board


class HealthPort:
    """Listens on all addresses: whoever asks, an orchestrator, is elsewhere. It tells nothing but these two answers."""

    def __init__(self, board: Board, bound: socket.socket) -> None:
        class Answers(_Answers):
            the_board = board

        self._server = ThreadingHTTPServer(bound.getsockname()[:2], Answers, bind_and_activate=False)
        self._server.daemon_threads = True
        self._server.socket.close()
        self._server.socket = bound
        self._server.server_activate()

    @property
    def port(self) -> int:
        port: int = self._server.socket.getsockname()[1]
        return port

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()


class _Answers(BaseHTTPRequestHandler):
    the_board: ClassVar[Board]
    timeout = 10  # seconds for a whole request; who says nothing is hung up on
    server_version = "board"
    sys_version = ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].rstrip("/")
        if path == "/healthz":
            self._answer(200, {"status": "ok"})
        elif path == "/readyz":
            checks = readiness(self.the_board)
            good = is_ready(checks)
            self._answer(200 if good else 503, {"status": "ready" if good else "not ready", "checks": checks})
        else:
            self._answer(404, {"message": "Here are /healthz and /readyz only.", "code": "not_found"})

    do_HEAD = do_GET

    def _answer(self, status: int, body: dict[str, object]) -> None:
        raw = json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        """Probes come every few seconds: not a line in the log for each."""
