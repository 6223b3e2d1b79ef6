"""Forms: read up to a limit, and only from our own pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from board.tasks import text
from board.web.visit import SignInNeeded, TheVisit, Visit

# Fields of one form: 200 selected tasks and a few more.
_MOST_FIELDS = 300
_SMALL = 64 * 1024  # bytes, for whoever is not signed in: an address and a password
_SEALED = 256 * 1024  # the longest reason (10,000 characters of up to 12 bytes in a URL encoding) and a seal


class BadForm(Exception):
    """The form did not come from a page of ours that is still good. draft: what was typed."""

    def __init__(self, code: str, draft: Mapping[str, str]) -> None:
        super().__init__(code)
        self.code, self.draft = code, dict(draft)


@dataclass(frozen=True, slots=True)
class Form:
    fields: list[tuple[str, str]] = field(default_factory=list)

    def one(self, name: str) -> str:
        """The field's text without white space around it; empty when it is missing."""
        return next((value for key, value in self.fields if key == name), "").strip()

    def raw(self, name: str) -> str:
        """As it was typed: passwords."""
        return next((value for key, value in self.fields if key == name), "")

    def many(self, name: str) -> list[str]:
        return [value for key, value in self.fields if key == name]

    def number(self, name: str) -> int | None:
        value = self.one(name)
        return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else None

    def draft(self) -> dict[str, str]:
        """What a person has typed: everything but secrets and what the page put in."""
        ours = {"csrf", "version", "content_hash", "key", "password", "verdict", "next", "do", "task", "seal"}
        return {name: value for name, value in self.fields if name not in ours and value.strip()}


async def the_form(request: Request, visit: TheVisit) -> Form:
    """The form of a POST. Refuses other sites (Origin, Sec-Fetch-Site) and, once signed in, a missing CSRF token."""
    # URL encoding writes a byte in up to three characters.
    limit = _SMALL if visit.session is None else _SMALL + 3 * visit.board.settings.max_json
    form = await _read(request, limit)
    if not from_here(request, visit):
        raise BadForm("other_site", form.draft())
    if visit.session is not None and not visit.session.accepts(form.raw("csrf")):
        raise BadForm("stale_form", form.draft())
    return form


async def the_sealed_form(request: Request, visit: TheVisit) -> Form:
    """The form of a review link. Refuses other sites; the seal in it, which the endpoint checks, is its CSRF token.

    Its page sends no referrer, because its address is a secret; under that browsers write `Origin: null`.
    """
    form = await _read(request, _SEALED)
    if not from_here(request, visit, veiled=True):
        raise BadForm("other_site", form.draft())
    return form


async def the_own_form(form: Annotated[Form, Depends(the_form)], visit: TheVisit) -> Form:
    """The form of somebody signed in. Comes before TheReader in an endpoint, so that what was typed is not lost."""
    if visit.session is None:
        raise SignInNeeded(form.draft())
    return form


AnyForm = Annotated[Form, Depends(the_form)]
SealedForm = Annotated[Form, Depends(the_sealed_form)]
OwnForm = Annotated[Form, Depends(the_own_form)]


def from_here(request: Request, visit: Visit, *, veiled: bool = False) -> bool:
    """Whether the browser says that the form stood on a page of ours. veiled: on one that sends no referrer.

    Sec-Fetch-Site is sent over https and to localhost only; elsewhere Origin tells. A program that sends neither is no
    browser, so nobody's cookies are borrowed.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    if origin is None or (veiled and origin == "null"):
        return True
    ours = {request.headers.get("host", ""), urlsplit(visit.board.settings.public_url).netloc}
    return urlsplit(origin).netloc in ours - {""}


async def _read(request: Request, limit: int) -> Form:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise HTTPException(415)
    return Form(_fields(await _body(request, limit)))


async def _body(request: Request, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise HTTPException(413)
        parts.append(chunk)
    return b"".join(parts)


def _fields(body: bytes) -> list[tuple[str, str]]:
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="replace")
    except ValueError as error:
        raise HTTPException(400) from error
    # Browsers send line ends as CR LF; what cannot be stored (NUL) becomes visible instead.
    return [(name, text.clean(value.replace("\r\n", "\n"))) for name, value in pairs]
