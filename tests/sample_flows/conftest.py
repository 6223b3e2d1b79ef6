"""A served board, as for the tests of the API."""

from tests.api.conftest import one_api

__all__ = ["one_api"]
