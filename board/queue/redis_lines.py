"""The lanes in Redis: a sorted set of internal ids for each pool and lane, in the order in which they begin.

They are a copy of what the ledger holds, made to be asked fast, and nothing in it counts: an id that is there twice or
should not be there is refused by the ledger, and one that is missing is found by it. Two marks say whether the copy is
complete: a filling sets the first one when it begins and the second one when it has finished; while they differ, or
either is gone (FLUSHALL, a restart without the data, a process that could not put in what it had), nothing is taken.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from importlib.resources import files
from typing import Any, NamedTuple

import redis
from sqlalchemy import RowMapping

from board.queue.lanes import LANES
from board.redis_door import RedisDoor, about
from board.tasks.states import RANK_FIRST, Pool

LANE_STEP = 10**14  # more than the milliseconds since 1970 will be for 3,000 years
FIRST_STEP = 10**13  # a task that comes first in its lane scores so much less; the milliseconds reach it in 2286
_LATEST = FIRST_STEP - 1
# Ids of one score stand in the order of their texts: with leading zeros that is the order in which they were made.
_WIDTH = 12
# ZREM and ZADD of this many ids each keep the server busy for about a millisecond.
CHUNK = 1000
_TAKE = files("board.queue").joinpath("take.lua").read_text(encoding="utf-8")


class Place(NamedTuple):
    """Where a task stands. rank: in its lane, as in board.tasks.states."""

    task: int
    pool: str
    lane: int
    rank: int
    ready_at: datetime

    @property
    def score(self) -> int:
        score = self.lane * LANE_STEP + min(milliseconds(self.ready_at), _LATEST)
        return score - FIRST_STEP if self.rank == RANK_FIRST else score


class Change(NamedTuple):
    """A task that has got a place, or (None) has none any more. clear: it may stand elsewhere in its pool until now."""

    task: int
    pool: str
    place: Place | None
    clear: bool


def place_of(row: RowMapping) -> Place:
    return Place(row["id"], row["pool"], row["lane"], row["rank"], row["ready_at"])


def milliseconds(moment: datetime) -> int:
    """Since 1970, cut off: an id may be taken up to a millisecond early, and the ledger refuses the rare one."""
    return int(moment.timestamp() * 1000)


class RedisLines:
    """All that the queue asks of Redis. Every method raises RedisAway."""

    def __init__(self, door: RedisDoor) -> None:
        self._door = door
        self._begun, self._finished = door.keys("filling", "begun"), door.keys("filling", "finished")
        self._keys = {(str(pool), lane): door.keys("ready", pool, lane) for pool in Pool for lane in LANES}
        self._script: Any = None
        door.on_back.append(self.spoil)

    def key(self, pool: str, lane: int) -> str:
        return self._keys[pool, lane]

    def take(
        self, pool: Pool, lanes: Sequence[int], weights: Sequence[int], slots: int, rest: int, moment: datetime
    ) -> dict[int, int] | None:
        """Take the next ids out of the lanes, as board.queue.lanes shares: id to lane, in the order they begin.

        weights: of P0 to P3. moment: of the database; later ids stay. None: the lanes are not complete, ask the ledger.
        """
        asked = sorted(lanes)
        turns = self._door.keys("turns", pool, *asked)  # a claimer of some lanes only is not to use up another's round
        keys = [self._begun, self._finished, turns, *(self.key(pool, lane) for lane in asked)]
        shares = [number for lane in asked for number in (lane, weights[lane])]
        arguments = [milliseconds(moment), slots, rest, *shares]

        def ask(client: redis.Redis) -> Any:
            if self._script is None:
                self._script = client.register_script(_TAKE)
            return self._script(keys=keys, args=arguments)

        found = self._door.run(ask)
        return None if found is None else {int(task): lane for lane, task in zip(found[::2], found[1::2], strict=True)}

    def write(self, changes: Iterable[Change]) -> None:
        """Bring the lanes up to date, in one round trip. Of several changes of one task the last one counts."""
        last = {(change.pool, change.task): change for change in changes}
        put: dict[str, dict[str, float]] = {}
        gone: dict[str, list[str]] = {}
        for change in last.values():
            if change.clear or change.place is None:
                gone.setdefault(change.pool, []).append(_member(change.task))
            if change.place is not None:
                key = self.key(change.pool, change.place.lane)
                put.setdefault(key, {})[_member(change.task)] = change.place.score

        def ask(client: redis.Redis) -> None:
            with client.pipeline(transaction=False) as pipe:
                for pool, members in gone.items():
                    for begin in range(0, len(members), CHUNK):
                        for lane in LANES:
                            pipe.zrem(self.key(pool, lane), *members[begin : begin + CHUNK])
                for key, scores in put.items():
                    pipe.zadd(key, scores)
                pipe.execute()

        self._door.run(ask)

    # -- whether the copy is complete -------------------------------------------------------------------------------

    def begin_filling(self) -> str:
        """Empty the lanes, which are incomplete from now on; the mark to finish with.

        It bears the name of the running server: after a restart some of the last writes may be lost.
        """

        def ask(client: redis.Redis) -> str:
            mark = f"{_running(client)}:{secrets.token_hex(8)}"
            with client.pipeline(transaction=True) as pipe:
                pipe.set(self._begun, mark)
                pipe.delete(*self._keys.values())
                pipe.execute()
            return mark

        return self._door.run(ask)

    def finish_filling(self, mark: str) -> None:
        """All that stands in the ledger was put in since. Void if somebody has begun or spoiled meanwhile."""
        self._door.run(lambda client: client.set(self._finished, mark))

    def complete(self) -> bool:
        """Whether the last filling is good still."""

        def ask(client: redis.Redis) -> bool:
            begun, finished = client.mget(self._begun, self._finished)
            return begun is not None and begun == finished and str(begun).startswith(f"{_running(client)}:")

        return self._door.run(ask)

    def spoil(self, client: redis.Redis) -> None:
        """This process may have lost changes: the copy is not complete until it has been filled anew."""
        client.delete(self._begun)

    def sizes(self) -> Mapping[tuple[str, int], int]:
        """How many ids stand in each pool and lane, due or not."""

        def ask(client: redis.Redis) -> list[int]:
            with client.pipeline(transaction=False) as pipe:
                for key in self._keys.values():
                    pipe.zcard(key)
                return pipe.execute()

        return dict(zip(self._keys, self._door.run(ask), strict=True))


def _member(task: int) -> str:
    return f"{task:0{_WIDTH}d}"


def _running(client: redis.Redis) -> str:
    """The name of this run of the server: a restart has another."""
    return str(about(client, "server").get("run_id"))
