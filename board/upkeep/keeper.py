"""What the clock brings about, as jobs of one worker process: some run in every one, most in the leader alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, or_

from board.catalogue.store import Catalogue
from board.db.engine import Database
from board.effects import waits, withdrawals
from board.files.ledger import Files
from board.notices.alerts import Alerting
from board.notices.digest import Digest
from board.notices.gather import any_noted
from board.notices.noting import Noting
from board.notices.send import Notices
from board.notices.send import any_due as any_due_notice
from board.reports.weekly import Reports
from board.review import forms, overdue, reminders
from board.review.decide import Decisions
from board.tasks.intake import Intake
from board.tasks.ledger import Ledger
from board.upkeep import ageing, sweep
from board.upkeep.archive import Archive
from board.upkeep.firing import Firing, any_due
from board.upkeep.leader import LOOK_SECONDS, Leader
from board.upkeep.shelf import Busy

if TYPE_CHECKING:
    from board.upkeep.rebuild import Rebuild

MISSED_SECONDS = 15.0  # for what is looked for every second in another way (board.worker.glance)
AGEING_SECONDS = 30.0  # how often waiting tasks are looked at for ageing; a tenth of the time they must have waited
TOLD_SECONDS = 30.0  # for what was missed
ALERT_SECONDS = 60.0  # rules count in minutes
FORMS_SECONDS = 15.0  # how often; Dify itself looks once a minute
ARCHIVE_SECONDS = 3600.0  # a task stays at most an hour longer than its type says
FILES_SECONDS = 3600.0  # what is removed is at least a day old
REPORT_SECONDS = 60.0  # how soon after midnight the week that is over is written down
FORGET_SECONDS = 3600.0  # what is removed is at least a day old


@dataclass(frozen=True, slots=True)
class Chore:
    """what: completes the sentence “could not …”. every: seconds. alone: only the leader does it.

    sign: says in SQL that there is something to do; it is looked at every second, and `every` is for the case that it
    was missed.
    """

    what: str
    work: Callable[[], Any]
    every: float
    alone: bool
    sign: ColumnElement[bool] | None = None


class Keeper:
    """The chores of one process.

    forget_workers: removes workers that are long gone. call_off: ends what cancelled tasks have left going on outside.
    noting, notices, alerting, digest: what people are told.
    rebuild: where the queue is in Redis.
    """

    def __init__(
        self,
        db: Database,
        ledger: Ledger,
        catalogue: Catalogue,
        intake: Intake,
        archive: Archive,
        *,
        holder: str,
        ageing_after: float,
        lease: float,
        forget_workers: Callable[[], None],
        files: Files,
        decisions: Decisions,
        reports: Reports,
        call_off: Callable[[], None],
        noting: Noting,
        notices: Notices,
        alerting: Alerting,
        digest: Digest,
        rebuild: Rebuild | None = None,
    ) -> None:
        self._leader = Leader(db, holder)
        self._archive = archive
        firing = Firing(db, intake)
        # Grace times and lost leases are looked after everywhere: their statements are guarded, and neither may wait
        # for a leader. The rest would only be done twice.
        self.chores: tuple[Chore, ...] = (
            Chore("find out who leads", self._seek, LOOK_SECONDS, alone=False),
            Chore(
                "finish grace times",
                lambda: sweep.finish_grace(db, ledger),
                MISSED_SECONDS,
                alone=False,
                sign=sweep.grace_over(),
            ),
            Chore("rescue lost leases", lambda: sweep.rescue_leases(db, ledger, catalogue), min(10.0, lease), False),
            Chore(
                "wake those who wait for a call",
                lambda: sweep.wake_waiting(db, ledger),
                MISSED_SECONDS,
                alone=True,
                sign=waits.any_at_all(),
            ),
            Chore("fire schedules", firing.fire, MISSED_SECONDS, alone=True, sign=any_due()),
            Chore("age waiting tasks", lambda: ageing.age(db, ledger, ageing_after), AGEING_SECONDS, alone=True),
            Chore(
                "look at deadlines",
                lambda: (ageing.hurry(db, ledger), ageing.mark_missed(db, ledger, noting.missed, catalogue.owner)),
                AGEING_SECONDS,
                alone=True,
            ),
            Chore(
                "call off what cancelled tasks left outside",
                call_off,
                MISSED_SECONDS,
                alone=True,
                sign=withdrawals.any_due(),
            ),
            Chore("tell people", notices.look, TOLD_SECONDS, alone=True, sign=or_(any_noted(), any_due_notice())),
            Chore("look at the alerts", alerting.look, ALERT_SECONDS, alone=True),
            Chore("write the daily digest", digest.look, ALERT_SECONDS, alone=True),
            Chore("forget notices", notices.forget, FORGET_SECONDS, alone=True),
            Chore("forget alerts", alerting.forget, FORGET_SECONDS, alone=True),
            Chore("look at expired forms", lambda: _expired_forms(db, ledger), FORMS_SECONDS, alone=True),
            Chore(
                "look at overdue reviews",
                lambda: overdue.look(db, ledger, catalogue, decisions),
                MISSED_SECONDS,
                alone=True,
                sign=overdue.any_due(),
            ),
            Chore(
                "remind of reviews",
                lambda: reminders.look(db, ledger, catalogue),
                MISSED_SECONDS,
                alone=True,
                sign=reminders.any_due(),
            ),
            Chore("keep the report of the week that is over", reports.keep_last, REPORT_SECONDS, alone=True),
            Chore("archive old tasks", self._archive_old, ARCHIVE_SECONDS, alone=True),
            Chore("forget workers", forget_workers, FORGET_SECONDS, alone=True),
            Chore("forget firings", firing.forget, FORGET_SECONDS, alone=True),
            Chore("remove files that nobody needs", files.sweep, FILES_SECONDS, alone=True),
            Chore("remove content that no file has", files.sweep_content, 24 * FILES_SECONDS, alone=True),
            Chore("remove what broken uploads left behind", files.clean, FILES_SECONDS, alone=False),
        )
        if rebuild is not None:
            self.chores += (Chore("fill the queue in Redis", rebuild.look, rebuild.every, alone=True),)

    def do(self, chore: Chore) -> Any:
        """Its result; nothing is done where another process leads."""
        return chore.work() if self._leader.leads or not chore.alone else None

    def _seek(self) -> None:
        """Without a result: to lead makes nothing ready, and nobody need look for work because of it."""
        self._leader.seek()

    def _archive_old(self) -> None:
        with suppress(Busy):  # somebody called `board archive`
            self._archive.run(lambda: self._leader.leads)

    def leave(self, tx: Connection) -> None:
        """A clean stop: another one may lead at once."""
        self._leader.release(tx)


def _expired_forms(db: Database, ledger: Ledger) -> int:
    with db.write() as tx:
        return forms.look_again(tx, ledger)
