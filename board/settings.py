"""Every setting of the board: one class, read from BOARD_* variables or a `.env` file, checked before anything starts.

A wrong value stops the start with the setting's name, what is wrong with it, and an example (`SettingsError`).
"""

from __future__ import annotations

import base64
import ipaddress
import os
import re
from datetime import time
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from board.effects.rewrite import Rewrite
from board.effects.signing import problem_of
from board.rates import parse_rate

_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*$")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = re.compile(r"^\s*(\d+)\s*(B|KB|MB|GB)?\s*$", re.IGNORECASE)
_BYTES = {"B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3}

EXAMPLES = {
    "database_url": "sqlite:///./data/board.db or postgresql://user:password@host/board",
    "redis_url": "redis://127.0.0.1:6379/0",
    "data_dir": "./data",
    "public_url": "https://board.example.org",
    "encryption_key": "32 random bytes as URL-safe base64; `openssl rand -base64 32 | tr '+/' '-_'` makes one",
    "webhook_secret": "whsec_ followed by base64, or whsec_NEW,whsec_OLD while it is being changed",
    "concurrency": "16",
    "file_concurrency": "3",
    "max_pixels": "100M",
    "reserved_p0_slots": "1",
    "lane_weights": "16,5,2,1",
    "ageing_after": "5m",
    "intake_rate": "600/min",
    "lease": "60s",
    "max_json": "4MB",
    "max_file": "200MB",
    "max_upload": "500MB",
    "storage_url": "file: (the data folder), file:///srv/files, or s3://bucket/folder?endpoint=https://s3.example.org",
    "timezone": "Asia/Shanghai",
    "digest_at": "09:00, or off",
    "lang": "en or zh_CN",
    "report_titles": "true or false",
    "allow_private_targets": "n8n.internal:5678, 10.0.0.0/8",
    "callback_rewrite": "http://localhost:5678=http://n8n:5678",
    "mcp_hosts": "board.internal, board.internal:8443",
    "log_format": "text or json",
    "bootstrap_api_key": "any text of 24 or more characters",
}


class SettingsError(Exception):
    """A setting is wrong. The text names every wrong setting, one to a line, with an example."""


def parse_duration(text: str | float) -> float:
    """Seconds from a text such as `90s`, `10m`, `1.5h`; units are ms, s, m, h and d. ValueError when it is none."""
    match = _DURATION.match(str(text))
    if not match:
        raise ValueError(f"“{text}” is not a duration; write a number and one of ms, s, m, h, d")
    return float(match[1]) * _SECONDS[match[2]]


def parse_size(text: str | int) -> int:
    """Bytes from a text such as `4MB` (1 MB = 1024 × 1024 bytes). ValueError when it is none."""
    match = _SIZE.match(str(text))
    if not match:
        raise ValueError(f"“{text}” is not a size; write a number and one of B, KB, MB, GB")
    return int(match[1]) * _BYTES[(match[2] or "B").upper()]


class Settings(BaseSettings):
    """All settings, ready for use: durations are seconds, sizes are bytes, lists are lists."""

    model_config = SettingsConfigDict(env_prefix="BOARD_", env_file=".env", env_file_encoding="utf-8", extra="ignore")

    database_url: str = "sqlite:///./data/board.db"
    redis_url: str = Field(default="", repr=False)
    data_dir: Path = Path("./data")
    public_url: str = "http://127.0.0.1:8000"
    encryption_key: str = Field(default="", repr=False)
    webhook_secret: str = Field(default="", repr=False)
    concurrency: int = Field(default=16, ge=1, le=1000)
    file_concurrency: int = Field(default_factory=lambda: max(1, (os.cpu_count() or 2) - 1), ge=1, le=256)
    reserved_p0_slots: int = Field(default=1, ge=0, le=1000)
    lane_weights: Annotated[list[int], NoDecode] = [16, 5, 2, 1]
    ageing_after: float = 300.0
    intake_rate: str = ""
    lease: float = 60.0
    max_json: int = 4 * 1024**2
    max_pixels: int = 100_000_000
    max_file: int = 200 * 1024**2
    max_upload: int = 500 * 1024**2
    storage_url: str = Field(default="file:", repr=False)
    timezone: str = "UTC"
    digest_at: time | None = time(9, 0)
    lang: Literal["en", "zh_CN"] = "en"
    report_titles: bool = True
    allow_private_targets: Annotated[list[str], NoDecode] = []
    callback_rewrite: Annotated[list[str], NoDecode] = []
    mcp_hosts: Annotated[list[str], NoDecode] = []
    log_format: Literal["text", "json"] = "text"
    bootstrap_api_key: str = Field(default="", repr=False)

    @field_validator("lease", "ageing_after", mode="before")
    @classmethod
    def _duration(cls, value: Any) -> float:
        return value if isinstance(value, float) else parse_duration(value)

    @field_validator("digest_at", mode="before")
    @classmethod
    def _time_of_day(cls, value: Any) -> time | None:
        if value is None or isinstance(value, time):
            return value
        if str(value).strip() in ("", "off"):
            return None
        try:
            return time.fromisoformat(str(value).strip()).replace(second=0, microsecond=0, tzinfo=None)
        except ValueError as error:
            raise ValueError(f"“{value}” is not a time of day") from error

    @field_validator("lease")
    @classmethod
    def _lease_range(cls, value: float) -> float:
        if not 1.0 <= value <= 3600.0:  # below 1 s a busy machine loses leases it holds; above 1 h a dead worker hides
            raise ValueError("must be between 1s and 1h")
        return value

    @field_validator("ageing_after")
    @classmethod
    def _ageing_range(cls, value: float) -> float:
        if value < 1.0:  # a lane is looked at every 30 s; less than a second would lift everything at once
            raise ValueError("must be at least 1s")
        return value

    @field_validator("intake_rate")
    @classmethod
    def _intake_rate(cls, value: str) -> str:
        if value.strip():
            parse_rate(value)
        return value.strip()

    @field_validator("lane_weights", mode="before")
    @classmethod
    def _lane_weights(cls, value: Any) -> list[int]:
        parts = value if isinstance(value, list) else [part.strip() for part in str(value).split(",")]
        if len(parts) != 4 or not all(str(part).isdigit() and 1 <= int(part) <= 1000 for part in parts):
            raise ValueError("give four whole numbers from 1 to 1000, for P0, P1, P2 and P3")
        return [int(part) for part in parts]

    @field_validator("storage_url")
    @classmethod
    def _storage(cls, value: str) -> str:
        from board.files.storage import check_url  # here, because most commands need no files

        check_url(value)
        return value

    @field_validator("max_pixels", mode="before")
    @classmethod
    def _pixels(cls, value: Any) -> int:
        if not (found := re.match(r"^\s*(\d{1,6})\s*([MmKk]?)\s*$|^\s*(\d{1,10})\s*$", str(value))):
            raise ValueError("must be a number of pixels, such as 100M")
        if found[3]:
            return int(found[3])
        return int(found[1]) * {"M": 1_000_000, "K": 1_000, "": 1}[found[2].upper()]

    @field_validator("max_json", "max_file", "max_upload", mode="before")
    @classmethod
    def _size(cls, value: Any) -> int:
        return value if isinstance(value, int) else parse_size(value)

    @field_validator("database_url")
    @classmethod
    def _database(cls, value: str) -> str:
        if not re.match(r"^(sqlite:///|postgres(ql)?(\+psycopg)?://)", value):
            raise ValueError("must start with sqlite:/// or postgresql://")
        try:
            make_url(value)
        except (ArgumentError, ValueError):  # their text repeats the address, password and all
            raise ValueError("is not a database address") from None
        return value

    @field_validator("redis_url")
    @classmethod
    def _redis(cls, value: str) -> str:
        if value and not re.match(r"^(rediss?|unix)://", value):
            raise ValueError("must start with redis://, rediss:// or unix://")
        if value:
            from board.redis_door import connect  # here, because most commands need no Redis

            connect(value).close()  # asks nothing of Redis yet
        return value

    @field_validator("public_url")
    @classmethod
    def _public(cls, value: str) -> str:
        if not re.match(r"^https?://[^/\s]+", value):
            raise ValueError("must be a full address that starts with http:// or https://")
        return value.rstrip("/")

    @field_validator("encryption_key")
    @classmethod
    def _key(cls, value: str) -> str:
        for part in filter(None, value.split(",")):
            try:
                raw = base64.urlsafe_b64decode(part.strip())
            except ValueError as error:
                raise ValueError("is not URL-safe base64") from error
            if len(raw) != 32:
                raise ValueError(f"holds {len(raw)} bytes; 32 are needed")
        return value

    @field_validator("webhook_secret")
    @classmethod
    def _secret(cls, value: str) -> str:
        if value and (problem := problem_of(value)):
            raise ValueError(problem)
        return value

    @field_validator("timezone")
    @classmethod
    def _zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (KeyError, ValueError, OSError) as error:
            raise ValueError(f"“{value}” is not a time zone name") from error
        return value

    @field_validator("allow_private_targets", mode="before")
    @classmethod
    def _targets(cls, value: Any) -> list[str]:
        items = value if isinstance(value, list) else [part.strip() for part in str(value).split(",")]
        for item in filter(None, items):
            if "/" in item:
                try:
                    ipaddress.ip_network(item, strict=False)
                except ValueError:
                    raise ValueError(f"“{item}” is not a network") from None
            elif not re.match(r"^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+|[0-9a-fA-F:]+)(:\d+)?$", item):
                raise ValueError(f"“{item}” is not a host, host:port or network")
        return [item for item in items if item]

    @field_validator("callback_rewrite", mode="before")
    @classmethod
    def _rewrite(cls, value: Any) -> list[str]:
        items = value if isinstance(value, list) else [part.strip() for part in str(value).split(",")]
        items = [item for item in items if item]
        Rewrite.read(items)
        return items

    @field_validator("mcp_hosts", mode="before")
    @classmethod
    def _mcp_hosts(cls, value: Any) -> list[str]:
        items = value if isinstance(value, list) else [part.strip() for part in str(value).split(",")]
        for item in filter(None, items):
            if not re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:\d+)?", item):
                raise ValueError(f"“{item}” is not a host or host:port")
        return [item for item in items if item]

    @field_validator("bootstrap_api_key")
    @classmethod
    def _bootstrap(cls, value: str) -> str:
        if value and len(value) < 24:
            raise ValueError("is shorter than 24 characters")
        return value

    @property
    def rewrite(self) -> Rewrite:
        return Rewrite.read(self.callback_rewrite)

    @property
    def private_targets(self) -> list[str]:
        """The private addresses that callbacks may reach: those that are listed, and what the rewriting leads to."""
        return [*self.allow_private_targets, *self.rewrite.reached]

    @property
    def kept_for_p0(self) -> int:
        """The slots of a worker that only P0 may take. Below four slots a kept one would cost a third or more of the
        work, so there it is kept only where somebody asked for it."""
        asked = "reserved_p0_slots" in self.model_fields_set
        return self.reserved_p0_slots if asked or self.concurrency >= 4 else 0

    @property
    def file_slots(self) -> int:
        """The slots for work on files: one more than asked for, which only P0 may take. A rush order starts beside long
        work, and shares the processor with it for as long as it takes."""
        return self.file_concurrency + 1

    @property
    def is_sqlite(self) -> bool:
        return self.database_url.startswith("sqlite")


def _sentence(problem: Any) -> str:
    """What is wrong with a value, in our own words: the validation library speaks of Python's types."""
    limits = problem.get("ctx", {})
    match problem["type"]:
        case "value_error":
            return str(limits["error"])
        case "greater_than_equal":
            return f"must be at least {limits['ge']}"
        case "less_than_equal":
            return f"must be at most {limits['le']}"
        case "literal_error":
            return f"must be {limits['expected'].replace(chr(39), '')}"
        case kind if kind.startswith(("int", "float")):
            return "must be a whole number" if kind.startswith("int") else "must be a number"
        case "bool_parsing" | "bool_type":
            return "must be true or false"
        case kind if kind.startswith("path"):
            return "must be a folder"
        case _:
            return "cannot be used"


def unknown_names() -> list[str]:
    """BOARD_* variables of the environment that no setting answers to: worth a warning, never fatal."""
    known = {f"BOARD_{name.upper()}" for name in Settings.model_fields}
    return sorted(
        name
        for name in os.environ
        if name.startswith("BOARD_") and name not in known and not name.startswith("BOARD_TEST_")
    )


def load(**overrides: Any) -> Settings:
    """The checked settings. Raises SettingsError with one line for each wrong value."""
    try:
        return Settings(**overrides)
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            name = str(problem["loc"][0])
            text = _sentence(problem)
            example = EXAMPLES.get(name)
            lines.append(f"BOARD_{name.upper()}: {text}." + (f" Example: {example}" if example else ""))
        raise SettingsError("\n".join(lines)) from None
