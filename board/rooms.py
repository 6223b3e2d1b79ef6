"""Wires the rooms: makes everything one process needs, once, in the order in which the parts depend on each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, RowMapping

from board.access.crypto import Vault
from board.access.installation import installation_id, open_vault, webhook_secret
from board.access.known_keys import KnownKeys
from board.catalogue.connection_spec import CHATS
from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue
from board.catalogue.trial import Trial
from board.catalogue.waits import is_called_back
from board.db.engine import Database, after_commit
from board.db.migrate import check
from board.effects import open_calls
from board.effects.announcing import Announcing
from board.effects.callbacks import Callbacks
from board.effects.calls import elsewhere
from board.effects.deliver import Outbox
from board.effects.guard import Guard
from board.effects.incoming import Incoming, Rights
from board.effects.scribe import Scribe
from board.files.ledger import Files
from board.files.previews import Previews
from board.files.storage import open_storage
from board.notices.alerts import Alerting
from board.notices.channels import load_notifiers
from board.notices.digest import Digest
from board.notices.noting import Noting
from board.notices.send import Notices
from board.ports import Closing, ConnectionView, Handler, Notifier, Refused, Storage
from board.queue.gate import Gate
from board.queue.intake_rate import IntakeRate
from board.queue.ledger_queue import LedgerQueue
from board.queue.waiting import Waiting
from board.queue.wanted import Queue
from board.reports.weekly import Reports
from board.review.by_link import ByLink
from board.review.decide import Decisions
from board.review.holding import Holding
from board.review.links import Links
from board.review.owners import STUCK, Owners
from board.review.read import open_summaries
from board.review.resolve import Resolutions
from board.review.visits import Visits
from board.settings import EXAMPLES, Settings, SettingsError
from board.signals.arrivals import Arrivals
from board.signals.callers import Callers
from board.signals.carrier import Carrier
from board.signals.hub import Signals
from board.signals.over_postgres import PostgresCarrier
from board.signals.signal import Call
from board.signals.telling import CALLS, Telling
from board.tasks.followers import When
from board.tasks.intake import Intake
from board.tasks.ledger import Ledger
from board.tasks.states import RULES, Pool, Status
from board.tasks.view import documents
from board.upkeep.archive import Archive
from board.upkeep.keeper import Keeper
from board.upkeep.schedules import Schedules
from board.upkeep.shelf import Shelf
from board.upkeep.watch import Watch
from board.worker import crew, presence
from board.worker.claims import Claims
from board.worker.consumer import Consumer
from board.worker.holds import Holds, kept_back
from board.worker.mailbox import Mailbox
from board.worker.outside_calls import OutsideCalls
from board.worker.preparing import Preparer
from board.worker.presence import Entry, Presence
from board.worker.registry import load_handlers
from board.worker.run import Runner
from board.worker.withdrawing import Withdrawing

if TYPE_CHECKING:  # loaded where there is a Redis: its client takes six megabytes
    from board.queue.redis_feed import RedisFeed
    from board.redis_door import RedisDoor
    from board.upkeep.rebuild import Rebuild


@dataclass(slots=True)
class Board:
    """The wired rooms. `signals.start()` where others are to be heard; `close()` at the end."""

    settings: Settings
    db: Database
    signals: Signals
    vault: Vault
    keys: KnownKeys
    catalogue: Catalogue
    handlers: Mapping[str, Handler]
    notifiers: Mapping[str, Notifier]
    noting: Noting
    ledger: Ledger
    gate: Gate
    intake_rate: IntakeRate
    queue: Queue
    waiting: Waiting
    visits: Visits
    intake: Intake
    decisions: Decisions
    holding: Holding
    review_links: Links
    by_link: ByLink
    resolutions: Resolutions
    claims: Claims
    outside_calls: OutsideCalls
    incoming: Incoming
    schedules: Schedules
    reports: Reports
    files: Files
    previews: Previews
    watch: Watch
    webhook_secret: str = field(repr=False)
    check_url: Callable[[str, ConnectionView | None], None]  # refuses an address that may not be called
    redis: RedisDoor | None = None  # this and the next two where BOARD_REDIS_URL is set
    feed: RedisFeed | None = None
    rebuild: Rebuild | None = None
    consumer: Consumer | None = None
    demo: bool = False
    reviews_changed: Arrivals = field(default_factory=Arrivals)  # rings when a task comes to a person, or leaves one
    stopping: threading.Event = field(default_factory=threading.Event)  # set once this process goes down

    def task_documents(
        self, connection: Connection, rows: list[RowMapping], *, places: bool = False
    ) -> list[dict[str, Any]]:
        """Task objects of the contract, each with its open review and what it waits for.

        places: also its place in the lane and when it is expected to start, for whoever reads it.
        """
        moved = [row["id"] for row in rows if row["event_seq"] > 1]  # nobody is asked about what has just come in
        reviews = open_summaries(connection, moved) if moved else {}
        waiting = self.waiting.of(connection, rows, places=places)
        owners = {row["id"]: self.catalogue.owner(connection, row["type"], row["type_version"]) for row in rows}
        url = self.settings.public_url
        return documents(connection, rows, public_url=url, reviews=reviews, waiting=waiting, owners=owners)

    def task_document(self, connection: Connection, row: RowMapping, *, places: bool = False) -> dict[str, Any]:
        return self.task_documents(connection, [row], places=places)[0]

    @property
    def scribe(self) -> Scribe:
        """What writes out word to callers."""
        return Scribe(self.catalogue, self.task_documents)

    @property
    def trial(self) -> Trial:
        """What looks whether a connection works."""
        settings = self.settings
        return Trial(self.catalogue, self.handlers, settings.private_targets, self._chats(), settings.public_url)

    def _chats(self) -> dict[str, Notifier]:
        """Channels that can be tried by a message: nobody minds one in a chat."""
        return {kind: it for kind, it in self.notifiers.items() if kind in CHATS}

    @property
    def notices(self) -> Notices:
        """What tells people."""
        settings = self.settings
        allow, url = settings.private_targets, settings.public_url
        return Notices(self.db, self.catalogue, self.notifiers, allow, url, self.review_links)

    @property
    def archive(self) -> Archive:
        """What takes old tasks out of the tables, into the data folder."""
        return Archive(self.db, self.catalogue, self.task_documents, Shelf(self.settings.data_dir / "archive"))

    def make_consumer(
        self, *, only_types: Sequence[str] | None = None, only_lanes: Sequence[int] | None = None
    ) -> Consumer:
        """The consumer of this process, woken by every move made here; narrowed to some types and lanes if need be."""
        settings = self.settings
        name = presence.new_name()
        holds = Holds(self.db, self.catalogue, settings.timezone)
        runner = Runner(self.db, self.ledger, self.catalogue, holds)
        mailbox = Mailbox(self.db)
        preparer = Preparer(
            self.db,
            self.catalogue,
            self.handlers,
            self.task_document,
            self.webhook_secret,
            self.files,
            settings.rewrite,
            self.signals.send,
            mailbox,
            settings.public_url,
        )
        keeper = Keeper(
            self.db,
            self.ledger,
            self.catalogue,
            self.intake,
            self.archive,
            holder=name,
            ageing_after=settings.ageing_after,
            lease=settings.lease,
            forget_workers=partial(presence.forget, self.db),
            files=self.files,
            decisions=self.decisions,
            reports=self.reports,
            noting=self.noting,
            notices=self.notices,
            alerting=Alerting(self.db, settings.data_dir),
            digest=Digest(self.db, self.catalogue, settings.digest_at, settings.timezone),
            call_off=Withdrawing(self.db, self.catalogue, self.handlers, settings.private_targets).look,
            rebuild=self.rebuild,
        )
        self.consumer = Consumer(
            self.db,
            self.ledger,
            self.queue,
            preparer,
            runner,
            holds,
            mailbox,
            Outbox(self.db, self.catalogue, self.scribe, self.webhook_secret, settings.rewrite),
            keeper,
            Presence(self.db, Entry(name, settings.concurrency, only_types, only_lanes, self.handlers)),
            self.watch,
            name=name,
            concurrency=settings.concurrency,
            file_slots=settings.file_slots,
            reserved_p0=settings.kept_for_p0,
            weights=settings.lane_weights,
            zone=settings.timezone,
            lease=settings.lease,
            allow_private=settings.private_targets,
            only_types=only_types,
            only_lanes=only_lanes,
        )
        self.signals.on(Call.WORK, self.consumer.wake)
        self.signals.on(Call.OUTBOX, self.consumer.wake_outbox)
        self.signals.on(Call.RULES, self.consumer.follow_rules)
        self.signals.on(Call.CANCEL, self.consumer.look_for_cancelled)
        self.signals.on(Call.CALLED_BACK, self.consumer.look_for_answers)
        return self.consumer

    def _write_out(self, tx: Connection, rows: Sequence[RowMapping]) -> None:
        """Before a task at rest changes: word of how it is now is written out, and may leave after the commit."""
        if self.scribe.write_out(tx, rows):
            self.wake_outbox(tx)

    def _fed(self, pools: Collection[str]) -> None:
        """Redis has new work for these pools."""
        for pool in pools:
            self.signals.send(CALLS[pool])

    def wake_outbox(self, tx: Connection) -> None:
        """After the commit: a callback is due now."""
        after_commit(tx, self.signals.sender(Call.OUTBOX))

    def close(self) -> None:
        for handler in self.handlers.values():
            if isinstance(handler, Closing):
                handler.close()
        if self.feed is not None:
            self.feed.close()
        self.signals.close()
        if self.redis is not None:
            self.redis.close()
        self.db.close()


def _callable(settings: Settings) -> Callable[[str, ConnectionView | None], None]:
    """Refuses a callback address that may not be called. It is looked at as it will be called.

    Given a connection, only what is on its server may be, and that may, wherever it is: who made it has allowed it.
    """
    guard, rewrite = Guard(settings.private_targets), settings.rewrite

    def check(url: str, connection: ConnectionView | None) -> None:
        real = rewrite(url)
        if connection is None:
            return guard.check_url(real)
        if (words := elsewhere(connection, real)) is not None:
            raise Refused(words)

    return check


def _queue(
    db: Database, ledger: Ledger, gate: Gate, redis: RedisDoor | None
) -> tuple[Queue, RedisFeed | None, Rebuild | None]:
    from_ledger = LedgerQueue(db, ledger, gate)
    if redis is None:
        return from_ledger, None, None
    from board.queue.redis_feed import RedisFeed
    from board.queue.redis_lines import RedisLines
    from board.queue.redis_queue import RedisQueue
    from board.upkeep.rebuild import Rebuild

    lines = RedisLines(redis)
    feed = RedisFeed(lines)
    return RedisQueue(db, ledger, gate, lines, feed, from_ledger), feed, Rebuild(db, lines)


def acts_outside(handlers: Mapping[str, Handler], spec: TypeSpec) -> bool:
    """Whether the work of a type has side effects. A handler that is not installed here is taken to have them."""
    if spec.handler.side_effects is not None:
        return spec.handler.side_effects
    return spec.handler.use not in handlers or handlers[spec.handler.use].side_effects


def open_board(settings: Settings, *, handlers: Callable[[], Mapping[str, Handler]] = load_handlers) -> Board:
    """Everything wired on a database whose schema fits. Raises SchemaError, WrongKey, SettingsError."""
    db = Database(settings.database_url)
    with db.read() as connection:
        check(connection)
    vault = open_vault(settings, db)
    with db.write() as tx:
        installation = installation_id(tx)
    watch = Watch(db, installation)
    redis = _redis(settings, installation)
    signals = Signals(Callers(db), _carrier(settings, db, installation))
    secret = webhook_secret(settings)
    ledger = Ledger()
    known = handlers()
    catalogue = Catalogue(vault, [it.name for it in known.values() if getattr(it, "slots", None) == Pool.FILES])
    visits = Visits(catalogue)
    files = Files(
        db,
        _storage(settings),
        settings.data_dir / "uploads",
        settings.max_file,
        max_pixels=settings.max_pixels,
        slots=settings.file_slots,
    )
    check_url = _callable(settings)
    intake = Intake(
        ledger,
        catalogue,
        check_url,
        partial(acts_outside, known),
        files,
    )
    gate = Gate(db, ledger, catalogue, settings.timezone)
    queue, feed, rebuild = _queue(db, ledger, gate, redis)
    decisions = Decisions(ledger, catalogue)
    board = Board(
        settings=settings,
        db=db,
        signals=signals,
        vault=vault,
        keys=KnownKeys(db, settings.bootstrap_api_key),
        catalogue=catalogue,
        handlers=known,
        notifiers=load_notifiers(secret),
        noting=Noting(),
        ledger=ledger,
        gate=gate,
        intake_rate=IntakeRate(settings.intake_rate),
        queue=queue,
        waiting=Waiting(
            catalogue,
            crew.crew,
            crew.at_work_outside,
            gate.opening,
            partial(kept_back, catalogue=catalogue, zone=settings.timezone),
        ),
        visits=visits,
        intake=intake,
        decisions=decisions,
        holding=Holding(ledger, catalogue),
        review_links=Links(catalogue, settings.public_url),
        by_link=ByLink(ledger, catalogue, decisions, vault),
        resolutions=Resolutions(ledger, decisions),
        outside_calls=OutsideCalls(db, ledger, catalogue),
        incoming=Incoming(db, ledger, signals.send),
        claims=Claims(
            db, ledger, catalogue, queue, weights=settings.lane_weights, zone=settings.timezone, tell=signals.send
        ),
        schedules=Schedules(db, intake, settings.timezone),
        reports=Reports(db, settings.timezone, settings.report_titles),
        files=files,
        previews=Previews(db, files, known.values()),
        watch=watch,
        webhook_secret=secret,
        check_url=check_url,
        redis=redis,
        feed=feed,
        rebuild=rebuild,
    )
    if feed is not None:
        feed.fed = board._fed
        ledger.followers.append(feed.follow)
        ledger.placed.append(feed.placed)
    rights = Rights(
        lambda tx, task: is_called_back(known, catalogue.version(tx, task["type"], task["type_version"]).spec)
    )
    # In this order: the review of a visit stands before word of it goes out.
    ledger.followers += [
        When([move for move, rule in RULES.items() if rule.to in (Status.CANCELLED, Status.FAILED)], open_calls.leave),
        When([move for move, rule in RULES.items() if Status.NEEDS_REVIEW in (rule.to, *rule.sources)], visits),
        Callbacks(catalogue),
        Announcing(board.task_documents, signals.sender(Call.OUTBOX)),
        rights,
        board.noting,
        gate,
        Telling(signals, by_redis=feed is not None),
        When(STUCK, Owners(ledger, catalogue)),
    ]
    ledger.before.append(board._write_out)
    signals.on(Call.OUTSIDE, board.claims.arrivals.ring)
    signals.on(Call.REVIEWS, board.reviews_changed.ring)
    return board


def _storage(settings: Settings) -> Storage:
    try:
        return open_storage(settings.storage_url, settings.data_dir)
    except ValueError as error:
        raise SettingsError(f"BOARD_STORAGE_URL: {error}. Example: {EXAMPLES['storage_url']}") from None


def _redis(settings: Settings, installation: str) -> RedisDoor | None:
    if not settings.redis_url:
        return None
    from board.redis_door import RedisDoor

    return RedisDoor(settings.redis_url, installation)


def _carrier(settings: Settings, db: Database, installation: str) -> Carrier | None:
    """What tells other processes; on SQLite without Redis nothing does, and they find out by looking."""
    if settings.redis_url:
        from board.signals.over_redis import RedisCarrier

        return RedisCarrier(settings.redis_url, installation)
    return None if db.is_sqlite else PostgresCarrier(db.url, installation)
