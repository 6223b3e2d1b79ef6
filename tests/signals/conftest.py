"""Two processes of one board, over each carrier."""

from tests.signals.pair import pair

__all__ = ["pair"]
