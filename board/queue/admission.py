"""Who may start under the limits, inside the transaction that claims: counted in, or held out of line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Connection, RowMapping, func, not_, or_

from board.db.clock import read_now
from board.effects import open_calls
from board.queue import held, usage
from board.queue.limits import Limit, Rules
from board.queue.usage import NO_END, Now, Usage
from board.queue.wanted import Scope
from board.tasks.followers import Placed
from board.tasks.models import tasks
from board.tasks.states import Phase

# With a refusal the front of the lane is looked at, and what would be refused too leaves the line with it: a backlog is
# out of the way in few statements, of which none takes longer than some ten milliseconds. How much is looked at grows
# while it is worth it: among much other work a single refusal costs little.
FRONT_LEAST, FRONT_MOST, FRONT_STEP = 16, 1000, 4


class Fronts:
    """How much of each lane is looked at; the memory of one process."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}

    def size(self, lane: int) -> int:
        return self._sizes.get(lane, FRONT_MOST)

    def learn(self, lane: int, looked_at: int, refused: int) -> None:
        size = self.size(lane)
        worth_it = refused * FRONT_STEP >= looked_at
        self._sizes[lane] = min(FRONT_MOST, size * FRONT_STEP) if worth_it else max(FRONT_LEAST, size // FRONT_STEP)


class Admission:
    """For one transaction. Nothing is asked of the database before the first task with a limit.

    The rows of the limits are locked, so that claimers count one after another; what runs is counted after that. The
    first lock is waited for, all of it in one order. A limit that comes up later and is in another claimer's hands is
    left to that one: to wait for it could be to wait in a circle.

    placed: told of the tasks that have left the line.
    """

    def __init__(self, tx: Connection, rules: Rules, zone: ZoneInfo, placed: Placed, fronts: Fronts) -> None:
        self._tx, self._rules, self._zone, self._placed, self._fronts = tx, rules, zone, placed, fronts
        self._now: Now | None = None
        self._usage: dict[str, Usage] = {}  # of the rows that are locked here
        self._charged: set[str] = set()
        self._running: Counter[str] = Counter()  # by scope
        self._started: Counter[str] = Counter()  # here, and not yet written
        self._busy: set[str] = set()  # rows in another claimer's hands
        self._full: set[str] = set()  # scopes without room
        self._lines: dict[str, tuple[int, int]] = {}  # scopes that hold tasks back: lane and rank of the first
        self._behind: set[str] = set()  # of these, the scopes that would be overtaken
        self._looked_at: set[str] = set()
        self.passed: list[int] = []
        self.refused: dict[int, str] = {}  # by internal id the scope that has no room
        self._held: set[int] = set()  # of these, what has left the line

    def admit(self, rows: Sequence[RowMapping]) -> list[RowMapping]:
        """Those of the candidates that may start, in their order; they are counted in. The others are refused."""
        self._rules.keep_up(self._tx, rows)
        asked = [(row, self._rules.of(self._tx, row)) for row in rows]
        if not any(limits for _, limits in asked):
            self.passed += [row["id"] for row in rows]
            return list(rows)
        self._prepare([limit for _, limits in asked for limit in limits])
        # What a lost attempt has sent is asked about whatever the limits say: it may be going on out there.
        recovering = open_calls.left_open_among(self._tx, rows)
        admitted = []
        for row, limits in asked:
            blocking = None if row["id"] in recovering else self._blocking(row, limits)
            if blocking is None:
                self._start(limits, counts=row["id"] not in recovering)
                admitted.append(row)
                self.passed.append(row["id"])
            elif blocking.row not in self._busy:
                self.refused[row["id"]] = blocking.scope
        return admitted

    def past(self, admitted: Collection[int]) -> list[ColumnElement[bool]]:
        """Conditions for further candidates: none that would be refused, and none of those admitted before."""
        found: list[ColumnElement[bool]] = [tasks.c.id.not_in(admitted)] if admitted else []
        if self._full or self._busy:
            found.append(not_(or_(*self._under(self._full), *map(self._counted_in, self._busy))))
        if behind := self._behind - self._full:
            found.append(tasks.c.let_in.is_not(None) | not_(or_(*self._under(behind))))
        return found

    def hold(self, scope: Scope | None = None, lane: int | None = None) -> None:
        """Take out of line what was refused; and what of the front of a lane would be refused to such a claimer."""
        front: Sequence[RowMapping] = []
        if scope is not None and lane is not None:
            front = held.head(self._tx, lane, scope.ready(), self.passed, self._fronts.size(lane))
        shut = {row["id"]: name for row in front if (name := self._shut_by(row)) is not None}
        if lane is not None:
            self._fronts.learn(lane, len(front), len(shut))
        recovering = open_calls.left_open_among(self._tx, [row for row in front if row["id"] in shut])
        self.refused |= {task: name for task, name in shut.items() if task not in recovering}
        new = {task: name for task, name in self.refused.items() if task not in self._held}
        if new:
            self._held |= new.keys()
            self._placed(self._tx, held.hold(self._tx, new))

    def close(self) -> None:
        """Write what the admitted have used up."""
        usage.write(self._tx, {row: self._usage[row] for row in self._charged})

    # -- parts --------------------------------------------------------------------------------------------------------

    def _prepare(self, limits: Collection[Limit]) -> None:
        rows = {limit.row for limit in limits} - self._usage.keys() - self._busy
        if rows:
            locked = usage.lock(self._tx, rows, wait=not self._usage)
            self._usage |= locked
            self._busy |= rows - locked.keys()
            # After the lock: what the last holder claimed is seen now.
            self._now = Now(read_now(self._tx), self._zone)
            self._running = running_by_scope(self._tx, self._rules)
        new = {limit.scope for limit in limits} - self._looked_at
        self._lines |= held.holding(self._tx, new)
        self._looked_at |= new

    def _blocking(self, row: RowMapping, limits: Sequence[Limit]) -> Limit | None:
        """The first limit that keeps a task back."""
        for limit in limits:
            if limit.row not in self._busy and limit.scope not in self._full and self._room(limit) < 1:
                self._full.add(limit.scope)
            if limit.row in self._busy or self._shut(row, limit):
                if limit.scope not in self._full:
                    self._behind.add(limit.scope)
                return limit
        return None

    def _shut_by(self, row: RowMapping) -> str | None:
        """The first limit without room, as far as it is known here."""
        return next((limit.scope for limit in self._rules.of(self._tx, row) if self._shut(row, limit)), None)

    def _shut(self, row: RowMapping, limit: Limit) -> bool:
        """No room; or others are held that come before this one, and it was not let in: it queues behind them. One that
        any limit has let in waits in no second line, or it could go from line to line for ever."""
        if limit.scope in self._full or limit.scope not in self._lines or row["let_in"] is not None:
            return limit.scope in self._full
        return self._lines[limit.scope] <= (row["lane"], row["rank"])

    def _room(self, limit: Limit) -> int:
        assert self._now is not None
        at_once = NO_END
        if limit.concurrency is not None:
            at_once = limit.concurrency - self._running[limit.scope] - self._started[limit.scope]
        return min(at_once, self._usage[limit.row].room(limit, self._now))

    def _start(self, limits: Sequence[Limit], *, counts: bool) -> None:
        """counts: it begins the work; else it only asks what became of it."""
        assert self._now is not None or not limits
        for limit in limits:
            self._started[limit.scope] += 1
            if counts and self._now is not None and (limit.rate or limit.per_day):
                self._usage[limit.row].count(limit, self._now)
                self._charged.add(limit.row)

    def _under(self, scopes: Collection[str]) -> Iterator[ColumnElement[bool]]:
        """The tasks under limits, as SQL; of a connection by the newest version of each type, which is near enough to
        look past them: what slips through is asked again."""
        keys, types = [], []
        for scope in scopes:
            kind, _, name = scope.partition(":")
            if kind == "key":
                keys.append(name.rpartition(":")[2])
            elif kind == "type":
                types.append(name)
            else:
                work, act = self._rules.users(name)
                yield tasks.c.type.in_(work) & (tasks.c.phase == Phase.WORK)
                yield tasks.c.type.in_(act) & (tasks.c.phase == Phase.ACT)
        yield tasks.c.type.in_(types) & (tasks.c.phase == Phase.WORK)
        yield func.coalesce(tasks.c.limit_key, "").in_(keys)

    def _counted_in(self, row: str) -> ColumnElement[bool]:
        """The tasks whose limits are counted in a row: a type's own and those of its keys."""
        kind, _, name = row.partition(":")
        return tasks.c.type == name if kind == "type" else or_(*self._under([row]))


def running_by_scope(connection: Connection, rules: Rules) -> Counter[str]:
    """How many run under each limit."""
    counted: Counter[str] = Counter()
    for row in held.running(connection):
        for limit in rules.of(connection, row):
            counted[limit.scope] += 1
    return counted
