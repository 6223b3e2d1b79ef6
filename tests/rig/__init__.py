"""What the tests stand on: real databases, a real Valkey, a real browser, real processes of the board.

Each module holds one thing and its fixtures. A thing that is not installed here skips the test by name on a
developer's machine and fails it where `CI=true`.
"""
