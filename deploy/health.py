"""Asks a process of the board on this machine whether it is ready: `python health.py PORT`. Exit code 0: it is."""

import sys
import urllib.error
import urllib.request

try:
    with urllib.request.urlopen(f"http://127.0.0.1:{int(sys.argv[1])}/readyz", timeout=5) as answer:
        sys.exit(0 if answer.status == 200 else 1)
except urllib.error.HTTPError as error:
    sys.exit(error.read().decode(errors="replace"))  # what is wrong, for `docker inspect`
except OSError as error:
    sys.exit(f"no answer: {error}")
