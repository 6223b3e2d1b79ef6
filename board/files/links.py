"""Links to files that work without a key for a while: for Dify, n8n, and whoever is to have just this file."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from board.access.crypto import Vault
from board.access.errors import WrongKey

DEFAULT_SECONDS = 3600  # long enough for a run that reads its file late
MAX_SECONDS = 7 * 86_400  # a link lies in logs and histories; a week is what a file needs at most to be fetched


class BadLink(Exception):
    """The link was not made by this board, or its time is over."""

    def __init__(self) -> None:
        super().__init__("This link to a file has expired or is damaged. Ask for a new one where you got it.")


def make(vault: Vault, public_url: str, file: dict[str, Any], moment: datetime, seconds: float) -> tuple[str, datetime]:
    """The address and the moment at which it ends. It ends with the file's name, by which programs judge the kind."""
    ends = moment + timedelta(seconds=seconds)
    token = vault.encrypt(f"{file['file_id']} {ends.timestamp():.0f}")
    return f"{public_url}/files/{token}/{quote(file['name'], safe='')}", ends


def read(vault: Vault, token: str, moment: datetime) -> str:
    """The file id behind a token of `make`. Raises BadLink."""
    try:
        file_id, ends = vault.decrypt(token).split(" ")
        if float(ends) > moment.timestamp():
            return file_id
    except (WrongKey, ValueError):
        pass
    raise BadLink
