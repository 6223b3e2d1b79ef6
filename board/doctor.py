"""Looks at everything a board stands on, changes nothing, and says in plain words what is wrong and what helps."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

from pydantic import ValidationError
from sqlalchemy import Connection, text

from board import settings as all_settings
from board.access import secret_file
from board.access.crypto import Vault
from board.access.errors import WrongKey
from board.access.installation import check_key, stored_fingerprint
from board.catalogue.served import doubts
from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue, list_connections, list_types
from board.catalogue.trial import Trial
from board.catalogue.waits import is_called_back
from board.db import place
from board.db.clock import read_now
from board.db.engine import Database
from board.db.migrate import SchemaError, check
from board.effects import breaker
from board.files.identity import Identity
from board.files.storage import open_storage
from board.logs import first_line
from board.ports import ConnectionUser, ConnectionView
from board.queue.usage import Now
from board.redis_door import Keys, about, connect, reason, weakness
from board.settings import Settings, SettingsError
from board.worker.holds import spent
from board.worker.registry import load_handlers

# Leases and due times go by the database's clock; people compare with their own. More than this confuses them.
CLOCK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. A warning is worth knowing; with what is wrong the board does not start or work."""

    what: str
    status: Literal["ok", "warning", "wrong"]
    message: str


def examine() -> list[Finding]:
    """The board of this folder and environment. Nothing is written but a trial file in the data folder."""
    findings = [
        Finding("settings", "warning", f"{name} is not a setting of the board; it is ignored.")
        for name in all_settings.unknown_names()
    ]
    try:
        settings = all_settings.load()
    except SettingsError as error:
        return [*findings, *(Finding("settings", "wrong", line) for line in str(error).splitlines())]
    findings.append(Finding("settings", "ok", "Every value can be used."))
    findings += [_data_dir(settings.data_dir), *_database(settings)]
    return [*findings, _redis(settings.redis_url)] if settings.redis_url else findings


def _data_dir(folder: Path) -> Finding:
    there = next(it for it in (folder.absolute(), *folder.absolute().parents) if it.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        why = error.strerror or type(error).__name__
        return Finding("data folder", "wrong", f"Nothing can be written to {there} ({why}). See BOARD_DATA_DIR.")
    made = "can be written to" if folder.exists() else "is made at the first start"
    return Finding("data folder", "ok", f"{folder.absolute()} {made}.")


def _database(settings: Settings) -> Iterator[Finding]:
    try:
        place.check(settings.database_url)
    except place.BadPlace as error:
        yield Finding("database", "wrong", str(error))
    path = place.sqlite_path(settings.database_url)
    if path is not None and not path.exists():  # to look into it would make it
        message = f"There is no database {path} yet. Run `board migrate`, or `board up`, which does it by itself."
        yield Finding("database", "wrong", message)
        return
    db = Database(settings.database_url)
    try:
        with db.read() as connection:
            yield Finding("database", "ok", _version(connection, db.is_sqlite))
            if not db.is_sqlite:  # SQLite has no clock of its own
                yield _clock(connection)
            try:
                check(connection)
            except SchemaError as error:
                yield Finding("schema", "wrong", str(error))
                return
            yield Finding("schema", "ok", "It is the one that this program needs.")
            key, vault = _key(settings, connection)
            yield key
            yield _storage(settings, db)
            yield from _types(settings, connection)
            yield from _failing(connection)
            yield from _spent(settings, connection, vault)
            looks = _looks(settings, connection, vault) if vault is not None else []
        for name, trial, view, users in looks:
            for it in trial.look(view, users):
                yield Finding(f"connection {name}", it.status, it.message)
    except Exception as error:
        reason = first_line(getattr(error, "orig", None) or error).rstrip(".")
        yield Finding("database", "wrong", f"It does not answer as it should: {reason}. Check BOARD_DATABASE_URL.")
    finally:
        db.close()


def _storage(settings: Settings, db: Database) -> Finding:
    try:
        storage = open_storage(settings.storage_url, settings.data_dir)
    except ValueError as error:
        return Finding("storage", "wrong", f"BOARD_STORAGE_URL: {error}.")
    if problem := Identity(db, storage).problem():
        return Finding("storage", "wrong", problem)
    return Finding("storage", "ok", f"Files are in {storage.where}.")


def _redis(url: str) -> Finding:
    """A warning at most: without it the board works from the database, only slower where many workers are."""
    with connect(url) as client:
        try:
            client.set(Keys("doctor")("probe"), "1", px=1)  # a replica, or a full one, answers everything but this
            weak = weakness(client)
            server = about(client, "server")
        except Exception as error:
            message = f"{reason(error)} Work goes on from the database; see docs/redis.md."
            return Finding("redis", "warning", message)
    name = "Valkey" if server.get("server_name") == "valkey" else "Redis"
    version = server.get("valkey_version") or server.get("redis_version")
    named = f"{name} {version}" if version else "It"
    return Finding("redis", "warning" if weak else "ok", weak or f"{named} answers and takes writes.")


def _version(connection: Connection, is_sqlite: bool) -> str:
    query = "SELECT sqlite_version()" if is_sqlite else "SHOW server_version"
    return f"{'SQLite' if is_sqlite else 'PostgreSQL'} {connection.execute(text(query)).scalar_one()} answers."


def _clock(connection: Connection) -> Finding:
    asked = datetime.now(UTC)
    # Not board_now(): it belongs to the schema, which may not be there yet.
    there: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
    here = asked + (datetime.now(UTC) - asked) / 2
    apart = abs((there - here).total_seconds())
    if apart <= CLOCK_SECONDS:
        return Finding("clock", "ok", f"This machine and the database differ by {apart:.1f} s.")
    message = f"This machine and the database differ by {apart:.0f} s; the database's clock counts. Set both by NTP."
    return Finding("clock", "warning", message)


def _types(settings: Settings, connection: Connection) -> Iterator[Finding]:
    handlers = load_handlers()
    for row in list_types(connection):
        try:
            spec = TypeSpec.model_validate(row["spec"])
        except ValidationError:
            message = f"The stored type {row['name']} does not fit this program; apply it again."
            yield Finding("type", "wrong", message)
            continue
        for doubt in doubts(spec):
            yield Finding("type", "warning", doubt)
        if is_called_back(handlers, spec) and "public_url" not in settings.model_fields_set:
            message = (
                f"What {row['name']} starts is told to call back at {settings.public_url}, which others may not reach"
            )
            yield Finding("type", "warning", f"{message}. Set BOARD_PUBLIC_URL, for every worker.")


def _failing(connection: Connection) -> Iterator[Finding]:
    for row in breaker.read(connection):
        if row["until"] is not None:
            message = (
                f"It has failed {row['failures']} times in a row and is shut for now. Last trouble: {row['trouble']}"
            )
            yield Finding(f"connection {row['connection']}", "warning", message)


def _spent(settings: Settings, connection: Connection, vault: Vault | None) -> Iterator[Finding]:
    if vault is not None:
        now = Now(read_now(connection), ZoneInfo(settings.timezone))
        for name, why in spent(connection, Catalogue(vault), now).items():
            yield Finding(f"type {name}", "warning", why)


def _looks(
    settings: Settings, connection: Connection, vault: Vault
) -> list[tuple[str, Trial, ConnectionView, list[ConnectionUser]]]:
    """What is needed to look at each connection that can be looked at, read in one go."""
    trial = Trial(Catalogue(vault), load_handlers(), settings.allow_private_targets)
    rows = [row for row in list_connections(connection) if trial.can(row["kind"])]
    return [(row["name"], trial, *trial.read(connection, row["name"])) for row in rows]


def _key(settings: Settings, connection: Connection) -> tuple[Finding, Vault | None]:
    """Like the start of a process, without making or storing anything. The vault where the key fits."""
    path = settings.data_dir / "encryption_key"
    try:
        key = settings.encryption_key.strip(" ,") or secret_file.read(path)
        if key is None and stored_fingerprint(connection) is None:
            return Finding("key", "ok", f"The encryption key is made at the first start, as {path}."), None
        if key is None:
            message = f"BOARD_ENCRYPTION_KEY is not set and {path} does not exist, but the database belongs to a key."
            return Finding("key", "wrong", f"{message} Set the one or put the other back from your backup."), None
        vault = Vault(key)
        if stored_fingerprint(connection) is not None:
            check_key(connection, vault)
    except (WrongKey, SettingsError) as error:
        return Finding("key", "wrong", str(error)), None
    except ValueError:
        return Finding("key", "wrong", f"{path} does not hold an encryption key; put it back from your backup."), None
    mode = path.stat().st_mode & 0o077 if not settings.encryption_key.strip(" ,") and os.name == "posix" else 0
    if mode:
        return Finding("key", "warning", f"{path} can be read by others; run `chmod 600 {path}`."), vault
    return Finding("key", "ok", f"The encryption key fits the database (fingerprint {vault.fingerprint})."), vault
