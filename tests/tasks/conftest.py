import pytest

from board.tasks.ledger import Ledger


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()
