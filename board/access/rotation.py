"""A new encryption key: every stored secret is read with the old one and written with the new one."""

from __future__ import annotations

from sqlalchemy import Connection, Table, select, update

from board.access.crypto import Vault
from board.db.models import metadata


def renew_all(tx: Connection, vault: Vault) -> int:
    """Bring all secrets under the vault's first key; how many were changed. WrongKey when one cannot be read."""
    changed = 0
    for table in metadata.sorted_tables:
        for column in table.columns:
            if column.info.get("sealed"):
                changed += _renew_column(tx, vault, table, column.name)
    return changed


def _renew_column(tx: Connection, vault: Vault, table: Table, name: str) -> int:
    column = table.c[name]
    keys = list(table.primary_key.columns)
    changed = 0
    for *identity, token in tx.execute(select(*keys, column).where(column != "")).all():
        renewed = vault.renew(token)
        if renewed != token:
            # Repeating the old value leaves a secret alone that was entered anew in this moment.
            this_row = [key == value for key, value in zip(keys, identity, strict=True)]
            changed += tx.execute(update(table).where(*this_row, column == token).values({name: renewed})).rowcount
    return changed
