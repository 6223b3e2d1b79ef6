"""A receiver of webhooks that takes as little of the machine as one can: it answers 200 to whatever comes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.rig.reaper import Reaper

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


class Receiver(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._came = transport, b""

    def data_received(self, data: bytes) -> None:
        self._came += data
        while (end := self._came.find(b"\r\n\r\n")) >= 0:
            head = self._came[:end].lower()
            whole = end + 4 + int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            if len(self._came) < whole:
                return
            self._came = self._came[whole:]
            self._transport.write(_ANSWER)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def a_receiver(guard: Reaper) -> Iterator[str]:
    """The address of one in a process of its own."""
    command, root = [sys.executable, "-m", "bench.receiver"], Path(__file__).parents[1]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        guard.guard(process.pid)
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/hook"
        finally:
            process.kill()
            process.wait()
            guard.release(process.pid)


if __name__ == "__main__":
    asyncio.run(_serve())
