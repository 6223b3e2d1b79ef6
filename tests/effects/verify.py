"""A receiver's side of the signatures: the very code that docs/webhooks.md gives to its readers."""

import re
from pathlib import Path
from typing import Any

from tests.rig.receiver import Received

_PAGE = Path(__file__).parents[2] / "docs" / "webhooks.md"
_CODE = re.search(r"```python\n(.*?)```", _PAGE.read_text("utf-8"), re.DOTALL)
assert _CODE is not None
_RECEIVER: dict[str, Any] = {}
exec(_CODE[1], _RECEIVER)


def verified(request: Received, secret: str) -> bool:
    """Both signatures hold, and neither does when one byte of the body is another one."""
    forged = request.body[:-1] + b" "
    good = _RECEIVER["verify"](request.headers, request.body, secret)
    assert not _RECEIVER["verify"](request.headers, forged, secret)
    plain = _RECEIVER["verify_plain"](request.headers, request.body, secret)
    assert not _RECEIVER["verify_plain"](request.headers, forged, secret)
    return bool(good and plain)
