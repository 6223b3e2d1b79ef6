from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from board import settings
from board.catalogue.apply import Applied, apply
from board.rooms import Board, open_board
from board.worker.registry import load_handlers
from integrations.dify import handlers as dify_handlers
from integrations.n8n import handlers as n8n_handlers

HANDLERS = load_handlers() | {handler.name: handler for handler in [*dify_handlers(), *n8n_handlers()]}
Apply = Callable[..., Applied]


@pytest.fixture
def board(database_url: str, tmp_path: Path) -> Iterator[Board]:
    loaded = settings.load(database_url=database_url, data_dir=tmp_path / "data")
    opened = open_board(loaded, handlers=lambda: HANDLERS)
    yield opened
    opened.close()


@pytest.fixture
def put(board: Board) -> Apply:
    """`put(types=[…], connections=[…])` applies them in one transaction."""

    def put_(**data: Any) -> Applied:
        with board.db.write() as tx:
            return apply(tx, data, handlers=board.handlers, vault=board.vault, author="key:test")

    return put_
