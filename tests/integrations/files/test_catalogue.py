"""What a type may name is what a child can do."""

from __future__ import annotations

from importlib import import_module

import pytest

from board.ports import Closing
from integrations.files.catalogue import KINDS, all_handlers
from tests.rig.working import OpenWorking


@pytest.mark.parametrize("module", KINDS)
def test_every_kind_of_work_is_found_in_its_module(module: str) -> None:
    assert set(import_module(module).MAKERS) == set(KINDS[module])


def test_every_kind_of_work_has_its_handler() -> None:
    named = {name for kinds in KINDS.values() for name in kinds}
    assert {it.name for it in all_handlers()} == named | {"archive.package", "file.put"}


def test_handlers_are_told_when_the_process_stops(working_sqlite: OpenWorking) -> None:
    class Keeps:
        name, connection_kind, side_effects, closed = "keeps", None, False, 0

        def close(self) -> None:
            self.closed += 1

    handler = Keeps()
    board = working_sqlite(handler)  # type: ignore[arg-type] # it is never asked for work
    assert isinstance(handler, Closing)
    board.board.close()
    assert handler.closed == 1
