"""Whether a process can do its work, in words: for /readyz of the API and for the health port of a worker."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for

from board.access.errors import WrongKey
from board.access.installation import check_key
from board.db.migrate import SchemaError, check
from board.rooms import Board

# Probes give up after a few seconds; a database that takes longer than this for three small reads is no help anyway.
ANSWER_SECONDS = 3.0
# A consumer looks for work every second; half a minute without a look means that it hangs, or its database does.
LOOK_SECONDS = 30.0
OK = "ok"
# What work goes on without: it is told, and the process is ready all the same. To take it out of service would only
# make an outage of Redis, or of the storage of files, one of the board.
NOTES = frozenset({"redis", "storage"})
AWAY = "The database does not answer. See BOARD_DATABASE_URL and the log."

# Few threads, so that questions asked of a database that hangs do not pile up.
_askers = ThreadPoolExecutor(max_workers=4, thread_name_prefix="readiness")


def readiness(board: Board) -> dict[str, str]:
    """What was looked at, with `ok` or a sentence that says what is wrong. Answers within ANSWER_SECONDS."""
    asked: list[Future[dict[str, str]]] = [_askers.submit(_of_database, board), _askers.submit(_of_redis, board)]
    asked.append(_askers.submit(_of_storage, board))
    done, late = wait_for(asked, timeout=ANSWER_SECONDS)
    for it in late:
        it.cancel()
    checks = asked[0].result() if asked[0] in done else {"database": AWAY}
    for it in asked[1:]:
        checks |= it.result() if it in done else {}
    if board.consumer is not None:
        quiet = time.monotonic() - board.consumer.looked_at
        checks["worker"] = OK if quiet < LOOK_SECONDS else f"It has not been able to look for work for {quiet:.0f} s."
    return checks


def is_ready(checks: dict[str, str]) -> bool:
    return all(value == OK for name, value in checks.items() if name not in NOTES)


def _of_redis(board: Board) -> dict[str, str]:
    """Nothing where no Redis is used."""
    if board.redis is None:
        return {}
    from board.redis_door import RedisAway, weakness  # here, because most boards have no Redis

    try:
        return {"redis": board.redis.run(weakness) or OK}
    except RedisAway as error:
        return {"redis": f"Redis is away: {error} Work goes on from the database."}


def _of_storage(board: Board) -> dict[str, str]:
    try:
        return {"storage": board.files.identity.problem() or OK}
    except Exception:  # the database is away, which is said by itself
        return {}


def _of_database(board: Board) -> dict[str, str]:
    checks: dict[str, str] = {}
    try:
        with board.db.read() as connection:
            checks["database"] = OK
            check(connection)
            checks["migrations"] = OK
            check_key(connection, board.vault)
            checks["key"] = OK
    except SchemaError as error:
        checks["migrations"] = str(error)
    except WrongKey as error:
        checks["key"] = str(error)
    except Exception:
        checks["database"] = AWAY
    return checks
