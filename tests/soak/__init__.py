"""Long runs. LONGER: how many times as long as in the suite; `make soak` sets it."""

import os

LONGER = int(os.environ.get("BOARD_TEST_SOAK", "1"))
