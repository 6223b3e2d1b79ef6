"""A network between a process and its database that can be cut, and that can swallow everything without a word."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest


class Proxy:
    """Listens on a free loopback port and passes everything on to `target`, (host, port), and back."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._flowing = threading.Event()
        self._flowing.set()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def freeze(self) -> None:
        """From now on nothing gets through: connections stay open, new ones are taken, and nobody answers."""
        self._flowing.clear()

    def close(self) -> None:
        self._listener.close()
        self._flowing.set()
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                self._open += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flowing.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


@pytest.fixture
def postgres_proxy(postgres_url: str) -> Iterator[tuple[Proxy, str]]:
    """(the network, the address of the test's PostgreSQL database through it)."""
    before, _, rest = postgres_url.rpartition("@")
    host, _, database = rest.partition("/")
    name, _, port = host.partition(":")
    proxy = Proxy((name, int(port or 5432)))
    yield proxy, f"{before}@127.0.0.1:{proxy.port}/{database}"
    proxy.close()
