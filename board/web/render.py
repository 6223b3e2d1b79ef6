"""Turns templates into pages: autoescaped, in the reader's language, with the few helpers that templates use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from board.locale import LANGUAGES
from board.web import hidden, wording
from board.web.language import Language, as_time, language
from board.web.persons import initials
from board.web.tongue import marked
from board.web.tree import tree


def template_folder() -> Path:
    """Where the templates are: in an installed wheel beside the package's data, else in the checkout."""
    package = Path(str(files("board")))
    for folder in (package / "_data" / "templates", package.parent / "templates"):
        if (folder / "web").is_dir():
            return folder
    raise FileNotFoundError("The pages' templates are missing; install the board again.")


@cache
def environment(code: str, zone: str) -> Environment:
    """The templates in one language and time zone."""
    speech = language(code, zone)
    env = Environment(
        loader=FileSystemLoader(template_folder()),
        autoescape=True,
        undefined=StrictUndefined,  # a name misspelt in a template shows at once, not as a gap on the page
        extensions=["jinja2.ext.i18n"],
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.install_gettext_translations(speech.words, newstyle=True)  # type: ignore[attr-defined]
    env.globals |= {"language": speech, "languages": LANGUAGES, "wording": wording, "query": query}
    env.filters |= {
        "waiting": lambda waits: wording.waiting(speech, waits),
        "label": lambda name, table: wording.label(speech, getattr(wording, table), name),
        "moment": partial(_time, speech, speech.moment),
        "ago": partial(_time, speech, speech.ago),
        "age": partial(_time, speech, speech.age),
        "span": speech.span,
        "num": speech.number,
        "percent": speech.percent,
        "tree": lambda value: tree(hidden.strip_all(value, Counter())),
        "seg": lambda text: quote(str(text), safe=""),
        "initials": initials,
        "lang": partial(marked, code),
        "who": lambda identity: str(identity).split(":", 1)[-1],
    }
    return env


def _time(speech: Language, words: Any, value: Any) -> Markup:
    """A time in words; the exact one, in UTC, on hover and for machines."""
    if value is None:
        return Markup("–")
    moment = as_time(value)
    exact = moment.strftime("%Y-%m-%d %H:%M:%S UTC")
    tag = Markup('<time datetime="{}" title="{}">{}</time>')
    return tag.format(moment.strftime("%Y-%m-%dT%H:%M:%SZ"), exact, words(moment))


def query(path: str, values: Mapping[str, Any]) -> str:
    """The path with those values as its query that are not empty; lists repeat their name."""
    kept = {name: value for name, value in values.items() if value not in (None, "", [], ())}
    return f"{path}?{urlencode(kept, doseq=True)}" if kept else path
