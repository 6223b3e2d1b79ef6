"""How a refusal reaches a model.

Dify hides the bodies of 429 and 5xx answers from it, and takes 401 and 403 for a block of its own proxy. So what a
model should read comes as 400, 404, 409, 410, 413 or 422, in one sentence that says what to do.
"""

from __future__ import annotations

from board.api.errors import ApiError

# A key that is missing or may not do something is nothing that the model can mend; it can tell its people.
_STATUS = {401: 400, 403: 400, 405: 404, 429: 409}
_KEY = "Tell your people: "


def readable(error: ApiError) -> ApiError:
    """The same refusal under a status whose body is shown. What is our fault stays 500 or 503."""
    message = error.message
    if error.status_code in (401, 403):
        message = _KEY + message
    elif error.status_code == 429:
        seconds = next((it["retry_after"] for it in error.details if "retry_after" in it), None)
        message += f" Call again in {seconds} seconds." if seconds is not None else " Call again later."
    status = _STATUS.get(error.status_code, error.status_code)
    return ApiError(status, error.code, message, error.details, error.headers)
