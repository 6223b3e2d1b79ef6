"""The pages: thin modules that ask the rooms and fill templates. No SQL and no rule stands here."""

from __future__ import annotations

from fastapi import FastAPI

from board.access.throttle import Throttle
from board.web import (
    amend,
    attachments,
    audit,
    bulk,
    edit,
    errors,
    holding,
    inbox,
    link,
    notices,
    operations,
    ops,
    preferences,
    present,
    pulse,
    quality,
    reference,
    reports,
    review,
    settings,
    sign_in,
    subscriptions,
    task,
    tasks,
    views,
)
from board.web.security import PageHeaders, VersionedFiles, static_version


def install(app: FastAPI) -> None:
    """Add the pages to an application whose API is in place."""
    version = static_version()
    app.state.static = f"/static/{version}"
    app.state.throttle = Throttle()
    app.state.void_links = Throttle(limit=link.MOST_VOID)
    reviewing, working = (
        (inbox, views, pulse, bulk, amend, holding, present, review, attachments, link),
        (audit, edit, tasks, task, operations),
    )
    for module in (
        sign_in,
        *reviewing,
        *working,
        ops,
        quality,
        reports,
        preferences,
        settings,
        subscriptions,
        notices,
        reference,
    ):
        app.include_router(module.router)
    app.mount("/static/{version}", VersionedFiles(version), name="static")
    errors.install(app)
    app.add_middleware(PageHeaders)
