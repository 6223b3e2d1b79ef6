"""Logging of a process: to stderr, as text for people or JSON for collectors, without the chatter of libraries."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

# At INFO they write addresses with their secrets (httpx), or one line a second (apscheduler).
_QUIET = ("httpx", "httpcore", "apscheduler", "alembic", "uvicorn.access")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)


def first_line(error: BaseException) -> str:
    """An error in one line: a driver's text goes on with the whole statement."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def set_up(log_format: str) -> None:
    """log_format: "text" or "json"."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _Json() if log_format == "json" else logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    # A job that is still running when it is due again, as all are while a database hangs, is a warning each second.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
