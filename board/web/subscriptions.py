"""Who has subscribed to events, and how the last calls went; to be removed, or sent again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from board.access.rights import Act
from board.effects import subscriptions
from board.effects.addresses import masked
from board.effects.subscribed import document
from board.effects.subscriptions import SubscriptionRefused
from board.web.forms import OwnForm
from board.web.routing import PageRouter
from board.web.visit import TheReader, Visit

router = PageRouter()
PAGE = "/settings/subscriptions"


@router.show(PAGE)
def subscriptions_page(visit: TheReader) -> HTMLResponse:
    visit.actor.require(Act.ADMIN)
    with visit.board.db.read() as connection:
        found = [document(connection, row) for row in subscriptions.visible(connection, visit.actor)]
    return visit.page("subscriptions.html", subscriptions=[it | {"url": masked(it["url"])} for it in found])


@router.act(PAGE + "/{subscription_id}/remove")
def remove(subscription_id: str, form: OwnForm, visit: TheReader) -> RedirectResponse:
    with _changing(visit) as tx:
        subscriptions.remove(tx, subscription_id, visit.actor)
    return visit.go(PAGE, note="unsubscribed")


@router.act(PAGE + "/{subscription_id}/resend")
def send_again(subscription_id: str, form: OwnForm, visit: TheReader) -> RedirectResponse:
    with _changing(visit) as tx:
        subscriptions.send_again(tx, subscription_id, visit.actor)
        visit.board.wake_outbox(tx)
    return visit.go(PAGE, note="sent_again")


@contextmanager
def _changing(visit: Visit) -> Iterator[Any]:
    visit.actor.require(Act.ADMIN)
    try:
        with visit.board.db.write() as tx:
            yield tx
    except SubscriptionRefused as error:
        raise HTTPException(404) from error
