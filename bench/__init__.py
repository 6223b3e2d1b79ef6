"""Measurements of the board, each in one run with what it is compared with: `make bench`, docs/performance.md."""
