"""What this room refuses, in words for the person who asked."""

from __future__ import annotations


class AccessError(Exception):
    """Something was asked that cannot be done. `str()` is one plain English sentence that says what to do.

    code: snake_case, stable, for programs. field: the input that is wrong, if it is one. text and values: the
    sentence before filling in, so that pages can say it in another language: `gettext(e.text).format(**e.values)`.
    """

    def __init__(self, text: str, *, code: str, field: str | None = None, **values: str | int) -> None:
        super().__init__(text.format(**values))
        self.text = text
        self.code = code
        self.field = field
        self.values = values


class WrongKey(Exception):
    """The encryption key is not the one this database was made with. The text says what to do; it holds no secret."""
