"""Work that is done again and again: when it fails, that is said once in a while, and next time it is tried again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from board.logs import first_line

log = logging.getLogger(__name__)

SAY_AGAIN_SECONDS = 60.0  # a database that is away for an hour is 60 lines of log and not 10,000


class Patience:
    """One per process; callable from any thread."""

    def __init__(self) -> None:
        self.over = False  # set at a stop: from then on nothing is worth a line
        self._failing: dict[str, float] = {}  # what fails, and when it was last said

    def run(self, what: str, work: Callable[[], Any]) -> bool:
        """Do it; whether it went well. what: completes the sentence “could not …”."""
        try:
            work()
        except Exception as error:
            self.failed(what, error)
            return False
        self.worked(what)
        return True

    def worked(self, what: str) -> None:
        if self._failing.pop(what, None) is not None:
            log.info("it works again: %s", what)

    def failed(self, what: str, error: BaseException) -> None:
        moment = time.monotonic()
        last = self._failing.get(what)
        if not self.over and (last is None or moment - last >= SAY_AGAIN_SECONDS):
            self._failing[what] = moment
            log.error("could not %s: %s", what, first_line(error))
