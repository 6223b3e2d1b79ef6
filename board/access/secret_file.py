"""A secret kept in the data folder: made once, readable by the board's own user only."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from board.settings import SettingsError


def read(path: Path) -> str | None:
    """The secret in the file, or None when there is no such file. SettingsError when it cannot be read or is empty."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read ({_why(error)}); let the board's user read it.") from None
    if not text:
        raise SettingsError(f"{path} is empty; put the secret back from your backup.")
    return text


def read_or_make(path: Path, make: Callable[[], str], setting: str) -> str:
    """The secret in the file; where there is none, a new one with mode 600.

    Of several processes that start at once one makes it and all read the same: the whole file is written under
    another name first, and a hard link gives it its own name only if nobody else was faster. setting: the BOARD_ name
    that could be set instead, for the error's text.
    """
    found = read(path)
    if found is not None:
        return found
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(make() + "\n")
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, path)
        except FileExistsError:
            pass  # another process was faster: its secret counts
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be made ({_why(error)}); let the board's user write to that folder, or set {setting}."
        ) from None
    made = read(path)
    assert made is not None
    return made


def _why(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror or "no reason given") if isinstance(error, OSError) else "it is not text"
