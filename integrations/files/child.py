"""The begin of a child process that parses files: it dies with its parent, is nice to the rest, and has its limits."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

# Bytes of address space: a picture of 100 million pixels needs about 1.2 GB on its way through (RGBA, a copy while it
# is scaled or turned, the encoder). What needs more is a bomb, and costs this child only.
MEMORY = 3 * 1024**3
NICENESS = 10  # behind the API and the board's other threads, before what is idle
_PR_SET_PDEATHSIG = 1
_IOPRIO_WHO_PROCESS, _IOPRIO_BEST_EFFORT_LOWEST = 1, (2 << 13) | 7
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}


def begin(parent: int) -> None:
    """Called once in each child. parent: the process id whose death ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C in the terminal is the parent's to answer
    die_with(parent)
    with suppress(OSError):
        os.nice(NICENESS)
    _be_last_at_the_disk()
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    import integrations.files.images.open  # noqa: F401 - loaded once for all files that come


def make(makers: str, name: str, *given: Any) -> Any:
    """Runs in a child. makers: the module that has a function of this name in its MAKERS."""
    return import_module(makers).MAKERS[name](*given)


def die_with(parent: int) -> None:
    """Ask the system to kill this process when its parent dies, however that happens. Linux only."""
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)


def _be_last_at_the_disk() -> None:
    number = _IOPRIO_SET.get(platform.machine())
    if sys.platform == "linux" and number is not None:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).syscall(number, _IOPRIO_WHO_PROCESS, 0, _IOPRIO_BEST_EFFORT_LOWEST)
