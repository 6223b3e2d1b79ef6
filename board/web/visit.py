"""One request for a page: who visits, in which language, and how a page or a redirect is answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from board.access import sessions, views
from board.access.rights import Act, Actor, Forbidden
from board.access.sessions import Session
from board.effects import listing
from board.review import read
from board.rooms import Board
from board.tasks.visible import NoSuchTask, visible
from board.web import wording
from board.web.language import Language, choose, language
from board.web.render import environment

SESSION_COOKIE, LANGUAGE_COOKIE, NOTE_COOKIE = "board_session", "board_lang", "board_note"
YEAR = 365 * 86400  # seconds
CHANNEL = "web"


class SignInNeeded(Exception):
    """Nobody is signed in. draft: what was typed into the form, so that it is not lost."""

    def __init__(self, draft: Mapping[str, str] | None = None) -> None:
        super().__init__("Sign in first.")
        self.draft = dict(draft or {})


@dataclass(slots=True)
class Visit:
    """session: None when nobody is signed in."""

    request: Request
    board: Board
    session: Session | None
    language: Language

    @property
    def actor(self) -> Actor:
        """The signed-in person. SignInNeeded when there is none."""
        if self.session is None:
            raise SignInNeeded
        return self.session.actor

    def may(self, act: str, *, own: bool = False) -> bool:
        return self.session is not None and self.session.actor.may(Act(act), own=own)

    def gettext(self, text: str) -> str:
        return self.language.gettext(text)

    def page(self, template: str, code: int = 200, /, **values: Any) -> HTMLResponse:
        """A whole page from templates/web."""
        note = self.request.cookies.get(NOTE_COOKIE)
        waiting = in_question = None
        saved: list[views.View] = []
        if self.session is not None:
            with self.board.db.read() as connection:
                waiting = read.count_open(connection)
                in_question = listing.count_in_question(connection)
                saved = views.of(connection, self.session.actor.identity, views.REVIEWS)
        shared = {
            "visit": self,
            "demo": self.board.demo,
            "static": self.request.app.state.static,
            "csrf": self.session.csrf if self.session else "",
            "waiting": waiting,
            "in_question": in_question,
            "here": self.here,
            "saved": saved,
            "narrow": {},
            "note": wording.note(self.language, note) if note else None,
        }
        whole = shared | values
        at_list = whole.get("status") == "open"  # what is open now is an inbox, or a review beside it
        whole["view"] = next((it for it in saved if at_list and it.state == whole["narrow"]), None)
        text = environment(self.language.code, self.board.settings.timezone).get_template(f"web/{template}")
        answer = HTMLResponse(text.render(whole), code)
        if note is not None:
            answer.delete_cookie(NOTE_COOKIE, path="/")
        self._stay(answer)
        return answer

    def _stay(self, answer: HTMLResponse) -> None:
        """Once a day a session in use, and its cookie, get their whole time anew."""
        token = self.request.cookies.get(SESSION_COOKIE)
        if self.session is not None and self.session.renewal_due and token:
            with self.board.db.write() as tx:
                sessions.renew(tx, token)
            self.set_cookie(answer, SESSION_COOKIE, token, int(sessions.LIFETIME))

    def still_sees(self, task_id: str) -> bool:
        """Whether who opened this page is still signed in and may see the task."""
        token = self.request.cookies.get(SESSION_COOKIE, "")
        with self.board.db.read() as connection:
            session = sessions.find(connection, token)
            if session is None:
                return False
            try:
                visible(connection, session.actor, task_id)
            except (Forbidden, NoSuchTask):
                return False
        return True

    @property
    def here(self) -> str:
        """The address of this page, without the host."""
        url = self.request.url
        return f"{quote(url.path)}?{url.query}" if url.query else quote(url.path)

    def go(self, path: str, note: str | None = None) -> RedirectResponse:
        """On to a page of ours, with GET. note: a code that the next page says in words, once."""
        answer = RedirectResponse(path, 303)
        if note is not None:
            self.set_cookie(answer, NOTE_COOKIE, note, 60)
        return answer

    def set_cookie(self, answer: HTMLResponse | RedirectResponse, name: str, value: str, seconds: int) -> None:
        answer.set_cookie(
            name,
            value,
            max_age=seconds,
            path="/",
            secure=self.board.settings.public_url.startswith("https://"),
            httponly=True,
            samesite="lax",
        )


def the_visit(request: Request) -> Visit:
    """Works in a thread: it asks the database whose session this is."""
    board: Board = request.app.state.board
    token = request.cookies.get(SESSION_COOKIE)
    session = None
    if token:
        with board.db.read() as connection:
            session = sessions.find(connection, token)
    return speaking(request, board, session)


def speaking(request: Request, board: Board, session: Session | None) -> Visit:
    """A visit in the language that fits."""
    code = choose(
        session.lang if session else None,
        request.cookies.get(LANGUAGE_COOKIE),
        request.headers.get("accept-language"),
        board.settings.lang,
    )
    return Visit(request, board, session, language(code, board.settings.timezone))


TheVisit = Annotated[Visit, Depends(the_visit)]


def the_reader(visit: TheVisit) -> Visit:
    """Somebody signed in who may read."""
    visit.actor.require(Act.READ)
    return visit


TheReader = Annotated[Visit, Depends(the_reader)]


def own_path(text: str | None) -> str:
    """Where to go next: a path of ours, or the inbox for anything that could lead elsewhere."""
    if not text or not text.startswith("/") or text.startswith("//") or "\\" in text or not text.isprintable():
        return "/"
    return text
