"""`python -m bench [NAME…] [--json FILE]`: measure, print tables, then JSON lines."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable
from pathlib import Path

from bench import bloat, drain, files, growth, idle, intake, outbox, pages, scaling, urgent
from bench.report import Report
from bench.stand import Stand, a_stand

MEASUREMENTS = (drain, intake, scaling, growth, urgent, idle, bloat, outbox, files, pages)
BENCHES: dict[str, Callable[[Stand], Report]] = {it.NAME: it.run for it in MEASUREMENTS}


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m bench", description="Measurements of the board.")
    options.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(BENCHES)}; all if left out")
    options.add_argument("--json", type=Path, metavar="FILE", help="also write the figures as JSON lines")
    given = options.parse_args()
    if unknown := [name for name in given.names if name not in BENCHES]:
        options.error(f"there is no measurement “{unknown[0]}”; there are {', '.join(BENCHES)}")
    print(f"Python {platform.python_version()}, {platform.machine()}", file=sys.stderr)
    lines: list[str] = []
    with a_stand() as stand:
        for name in given.names or BENCHES:
            report = BENCHES[name](stand)
            print(report.table(), flush=True)
            lines += report.json_lines()
    if given.json:
        given.json.write_text("\n".join(lines) + "\n")
    else:
        print("\n".join(lines))


main()
