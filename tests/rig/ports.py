"""TCP ports on the loopback interface."""

import socket


def free_port() -> int:
    """A port that nobody listens on now. The kernel hands them out in random order, so two runs rarely meet."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
