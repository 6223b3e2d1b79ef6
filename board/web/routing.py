"""How page modules declare their addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class PageRouter(APIRouter):
    """Pages stand apart from the API: they are not in its description, and HEAD is answered as GET is."""

    def __init__(self) -> None:
        super().__init__(include_in_schema=False, default_response_class=HTMLResponse)

    def show(self, path: str) -> Callable[[Endpoint], Endpoint]:
        """A page that only shows: GET and HEAD change nothing."""
        return self.api_route(path, methods=["GET", "HEAD"], response_model=None)

    def act(self, path: str) -> Callable[[Endpoint], Endpoint]:
        """A form's target. The endpoint takes AnyForm or OwnForm, which check where the form comes from."""
        return self.api_route(path, methods=["POST"], response_model=None)
