"""The board's languages: texts stand in the source in English, translations in `<language>/LC_MESSAGES/board.po`.

The .po file is read directly, so that nothing compiled has to be kept in step; docs/translating.md says how to change
it.
"""

from __future__ import annotations

from functools import cache
from gettext import NullTranslations
from importlib.resources import files
from io import BytesIO

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.support import Translations

# Each language under its own name, because whoever looks for it may read no other.
LANGUAGES = {"en": "English", "zh_CN": "简体中文"}
DOMAIN = "board"


@cache
def translations(lang: str) -> NullTranslations:
    """The texts in one of LANGUAGES; English needs no file."""
    if lang == "en":
        return NullTranslations()
    source = files("board.locale") / lang / "LC_MESSAGES" / f"{DOMAIN}.po"
    compiled = BytesIO()
    with source.open("rb") as file:
        write_mo(compiled, read_po(file, locale=lang, domain=DOMAIN))
    compiled.seek(0)
    return Translations(compiled, DOMAIN)
