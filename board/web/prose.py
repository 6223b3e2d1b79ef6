"""Text that an AI wrote, as HTML that can do nothing: Markdown without raw HTML and images, then an allow-list."""

from __future__ import annotations

from urllib.parse import urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup

_TAGS = {
    *("p", "br", "hr", "ul", "ol", "li", "code", "pre", "blockquote", "strong", "em", "a"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
_SCHEMES = {"https", "mailto"}


def _name_targets(state: StateCore) -> None:
    """A link says where it leads; one that may not be followed becomes text with its address behind it."""
    for block in state.tokens:
        if block.children:
            block.children = _named(block.children)


def _named(tokens: list[Token]) -> list[Token]:
    named: list[Token] = []
    target = ""
    for token in tokens:
        if token.type == "link_open":
            target = str(token.attrGet("href") or "")
            if _scheme(target) in _SCHEMES:
                named.append(token)
        elif token.type == "link_close":
            if _scheme(target) in _SCHEMES:
                named.append(token)
            named.append(Token("text", "", 0, content=f" ({_shown(target)})"))
        else:
            named.append(token)
    return named


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme.lower()
    except ValueError:
        return ""


def _shown(url: str) -> str:
    """The whole host of a web address, in ASCII where it is not so written; anything else in full."""
    if _scheme(url) != "https":
        return url
    host = urlsplit(url).hostname or url
    try:
        plain = host.encode("idna").decode()
    except UnicodeError:
        return host
    return host if plain == host else f"{host}, {plain}"


# Indented code is off: a model that indents a paragraph means a paragraph.
_markdown = (
    MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table").disable(["image", "code", "entity"])
)
_markdown.core.ruler.push("name_targets", _name_targets)


def render(text: str) -> Markup:
    """Safe HTML of a Markdown text."""
    html = nh3.clean(
        _markdown.render(text),
        tags=_TAGS,
        attributes={"a": {"href", "title"}},
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )
    return Markup(html)  # noqa: S704 - cleaned in the line above
