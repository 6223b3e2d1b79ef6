import pytest

from tests.rig.working import OpenWorking, WorkingBoard


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    """A board without a consumer, with the type `trial` worked on from outside."""
    board = working(start=False)
    board.type(use="outside")
    return board
