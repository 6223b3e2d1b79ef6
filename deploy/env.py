"""Writes the file .env for compose.yaml, with fresh secrets: `python3 deploy/env.py [FILE]`. Never overwrites one."""

import base64
import os
import secrets
import sys


def text() -> str:
    """The lines. No name begins with BOARD_: a board that runs beside the containers reads .env too."""
    webhook = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    return f"""\
# Secrets and addresses for compose.yaml. Keep it: without the two encryption keys what is stored cannot be read.
POSTGRES_PASSWORD={secrets.token_hex(16)}
TASKBOARD_DB_PASSWORD={secrets.token_hex(16)}
N8N_DB_PASSWORD={secrets.token_hex(16)}
REDIS_PASSWORD={secrets.token_hex(16)}
TASKBOARD_ENCRYPTION_KEY={base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()}
TASKBOARD_WEBHOOK_SECRET={webhook}
TASKBOARD_API_KEY={secrets.token_hex(24)}
N8N_ENCRYPTION_KEY={secrets.token_hex(24)}
# What people type into the browser.
TASKBOARD_URL=http://localhost:8000
N8N_ORIGIN=http://localhost:5678
# Where the two listen. 0.0.0.0:8000 is every network; put a proxy with HTTPS before it.
TASKBOARD_LISTEN=127.0.0.1:8000
N8N_LISTEN=127.0.0.1:5678
TZ=UTC
"""


def main(file: str) -> None:
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        sys.exit(f"{file} is there already, with the secrets of what is stored; it was left as it is.")
    with os.fdopen(handle, "w") as out:
        out.write(text())
    print(f"{file} is written; only you can read it.")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".env")
