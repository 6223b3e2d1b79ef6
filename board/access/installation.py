"""What makes this installation itself: its encryption key, its webhook secret, its id."""

from __future__ import annotations

import base64
import secrets

from sqlalchemy import Connection, select, update

from board.access import rotation, secret_file
from board.access.crypto import Vault, new_key
from board.access.errors import WrongKey
from board.db.clock import now
from board.db.engine import Database
from board.db.insert import insert_once
from board.db.schema import Meta, table_of
from board.settings import Settings

_meta = table_of(Meta)
_FINGERPRINT = "key_fingerprint"
_ID = "installation_id"


def open_vault(settings: Settings, db: Database) -> Vault:
    """The vault with the key of this database; to be called once when a process starts, after the schema check.

    The key is BOARD_ENCRYPTION_KEY or the file `encryption_key` in the data folder, which the first start makes. With
    `new,old` every stored secret is brought under the new key. Raises WrongKey when the database belongs to another
    key, SettingsError when the file cannot be read or made.
    """
    vault = Vault(settings.encryption_key) if settings.encryption_key.strip(" ,") else _vault_from_file(settings, db)
    with db.write() as tx:
        _remember(tx, _FINGERPRINT, vault.fingerprint)
        check_key(tx, vault)
        if len(vault.fingerprints) > 1:
            # The fingerprint first: its row is the lock behind which processes that start at once wait in line.
            tx.execute(update(_meta).where(_meta.c.key == _FINGERPRINT).values(value=vault.fingerprint, set_at=now()))
            rotation.renew_all(tx, vault)
    return vault


def check_key(connection: Connection, vault: Vault) -> None:
    """Raise WrongKey unless the database belongs to one of the vault's keys."""
    stored = stored_fingerprint(connection)
    if stored not in vault.fingerprints:
        raise WrongKey(
            f"This database was set up with another encryption key (fingerprint {stored or 'none'}, yours has "
            f"{vault.fingerprint}). Set BOARD_ENCRYPTION_KEY to the key it was set up with, or put that key's file "
            "encryption_key back into BOARD_DATA_DIR; to change the key, set BOARD_ENCRYPTION_KEY to `new,old`."
        )


def webhook_secret(settings: Settings) -> str:
    """What signs calls to a task's callback_url: BOARD_WEBHOOK_SECRET, or the data folder's `webhook_secret`."""
    return settings.webhook_secret or secret_file.read_or_make(
        settings.data_dir / "webhook_secret",
        lambda: "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode("ascii"),
        "BOARD_WEBHOOK_SECRET",
    )


def installation_id(tx: Connection) -> str:
    """Tells boards that share a Redis apart: 16 random hexadecimal characters, made once and kept in the database."""
    return _remember(tx, _ID, secrets.token_hex(8))


def read_installation_id(connection: Connection) -> str | None:
    """The id of the board whose database this is; None where no process has started on it yet."""
    return _recall(connection, _ID)


def stored_fingerprint(connection: Connection) -> str | None:
    """Of the encryption key that this database belongs to; None where no process has started on it yet."""
    return _recall(connection, _FINGERPRINT)


def _vault_from_file(settings: Settings, db: Database) -> Vault:
    path = settings.data_dir / "encryption_key"
    # In this order: another process that starts now makes the file before it stores the fingerprint.
    with db.read() as connection:
        stored = stored_fingerprint(connection)
    text = secret_file.read(path)
    if text is None:
        if stored is not None:  # a new key could read none of the secrets that are there
            raise WrongKey(
                f"This database was set up with an encryption key (fingerprint {stored}), but BOARD_ENCRYPTION_KEY is "
                f"not set and {path} does not exist. Set the one or put the other back from your backup."
            )
        text = secret_file.read_or_make(path, new_key, "BOARD_ENCRYPTION_KEY")
    try:
        return Vault(text)
    except ValueError:
        raise WrongKey(
            f"{path} does not hold an encryption key (32 bytes in URL-safe base64). Put the right file back from your "
            "backup, or set BOARD_ENCRYPTION_KEY."
        ) from None


def _recall(connection: Connection, key: str) -> str | None:
    return connection.execute(select(_meta.c.value).where(_meta.c.key == key)).scalar_one_or_none()


def _remember(tx: Connection, key: str, value: str) -> str:
    """Store the value unless the key has one already; the value that counts."""
    insert_once(tx, _meta, "key", {"key": key, "value": value, "set_at": now()})
    stored = _recall(tx, key)
    assert stored is not None
    return stored
