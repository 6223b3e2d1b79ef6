"""In which language a page speaks, and how it says times, spans and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from gettext import NullTranslations
from zoneinfo import ZoneInfo

from babel import Locale
from babel.dates import format_skeleton, format_timedelta
from babel.numbers import format_decimal, format_percent

from board.locale import LANGUAGES, translations


@dataclass(frozen=True, slots=True)
class Language:
    """One language in one time zone. code: a key of LANGUAGES."""

    code: str
    zone: ZoneInfo
    words: NullTranslations
    locale: Locale

    @property
    def tag(self) -> str:
        """For `lang` attributes: `zh-CN`."""
        return self.code.replace("_", "-")

    def gettext(self, text: str) -> str:
        return self.words.gettext(text)

    def ngettext(self, one: str, many: str, number: int) -> str:
        return self.words.ngettext(one, many, number)

    def moment(self, value: str | datetime) -> str:
        """Date and time of day in the zone of the installation."""
        moment = as_time(value)
        day, clock = (format_skeleton(part, moment, self.zone, locale=self.locale) for part in ("yMMMd", "Hm"))
        return f"{day} {clock}"

    def day(self, value: str | datetime) -> date:
        """The day in the zone of the installation."""
        return as_time(value).astimezone(self.zone).date()

    def ago(self, value: str | datetime, now: datetime | None = None) -> str:
        """`5 minutes ago`, `in 2 hours`."""
        span = as_time(value) - (now or datetime.now(UTC))
        if abs(span) < timedelta(seconds=1):
            return self.gettext("just now")
        return format_timedelta(span, granularity="second", threshold=1.2, add_direction=True, locale=self.locale)

    def age(self, value: str | datetime, now: datetime | None = None) -> str:
        """How long ago, in the shortest form: `5m`."""
        span = max((now or datetime.now(UTC)) - as_time(value), timedelta(seconds=1))
        return format_timedelta(span, granularity="second", threshold=1.2, format="narrow", locale=self.locale)

    def span(self, seconds: float) -> str:
        """A duration: `10 seconds`."""
        return format_timedelta(timedelta(seconds=seconds), threshold=1.5, locale=self.locale)

    def number(self, value: int | float) -> str:
        return format_decimal(value, locale=self.locale)

    def percent(self, rate: float) -> str:
        """A share from 0 to 1: `12%`, and `1.5%`."""
        return format_percent(rate, "#,##0.#%", locale=self.locale)


def language(code: str, zone: str) -> Language:
    known = code if code in LANGUAGES else "en"
    return Language(known, ZoneInfo(zone), translations(known), Locale.parse(known))


def choose(user: str | None, cookie: str | None, accept: str | None, default: str) -> str:
    """The first that is known of: the user's setting, the cookie, what the browser accepts, the installation's."""
    for code in (user, cookie):
        if code in LANGUAGES:
            return code
    return _accepted(accept or "") or default


def as_time(value: str | datetime) -> datetime:
    """A moment of a document (RFC 3339) or of a row."""
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _accepted(header: str) -> str | None:
    """The best of an Accept-Language header; any Chinese is served better by ours than by English."""
    wishes: list[tuple[float, str]] = []
    for part in header[:500].split(","):
        tag, _, quality = part.strip().partition(";")
        weight = quality.strip().removeprefix("q=") or "1"
        try:
            wishes.append((float(weight), tag.strip().lower()))
        except ValueError:
            continue
    for liked, tag in sorted(wishes, key=lambda wish: -wish[0]):
        if liked > 0 and tag.split("-")[0] in ("en", "zh"):
            return "zh_CN" if tag.startswith("zh") else "en"
    return None
