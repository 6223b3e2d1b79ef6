"""The files that go to Dify with a run: by their address, or uploaded under the very user of the run.

Dify takes an upload only from the user who starts the run, so every attempt uploads anew. Files that are stored on the
board would come in by `file_item` and become an `Upload` there; the board has no such store yet, and they are refused
by name.
"""

from __future__ import annotations

import base64
import mimetypes
from typing import Any
from urllib.parse import urlsplit

from board.ports import Json, JsonObject
from integrations.dify.client import Client, Upload

KINDS = ("document", "image", "audio", "video", "custom")
MOST_BYTES = 15 * 1024**2  # Dify's usual limit of a document; an image may have 10 MB, which Dify itself will say


class BadFile(ValueError):
    """What stands for a file is none that can be sent. The message is a plain clause."""


def file_item(value: Json) -> JsonObject | Upload:
    """A file as Dify takes it, or one that must be uploaded first. Raises BadFile.

    Taken: Dify's own item {type, transfer_method, url or upload_file_id}; {url, type?}; an address as text;
    {name, base64} or {name, text}.
    """
    if isinstance(value, str):
        value = {"url": value}
    if not isinstance(value, dict):
        raise BadFile('must be a file: an address, {"url": …}, {"name": …, "base64": …} or Dify\'s own file item')
    if "file" in value or "file_id" in value:
        raise BadFile("names a file of the board; files of the board are not yet supported, give its address as `url`")
    if "name" in value and ("base64" in value or "text" in value):
        return _inline(value)
    method = value.get("transfer_method") or ("remote_url" if "url" in value else None)
    if method == "local_file" and value.get("upload_file_id"):
        item: dict[str, Any] = {"transfer_method": method, "upload_file_id": value["upload_file_id"]}
    elif method == "remote_url" and _is_address(value.get("url")):
        item = {"transfer_method": method, "url": value["url"]}
    else:
        raise BadFile("must be a file with an http or https address as `url`")
    kind = value.get("type") or _kind(urlsplit(str(value.get("url", ""))).path)
    if kind not in KINDS:
        raise BadFile(f"needs a `type`, one of {', '.join(KINDS)}")
    return {"type": kind, **item}


async def uploaded(client: Client, user: str, value: Any) -> Any:
    """The same value with every Upload in it stored in Dify and named by its id."""
    if isinstance(value, Upload):
        item = {"type": _kind(value.name, value.mime_type) or "document", "transfer_method": "local_file"}
        return item | {"upload_file_id": await client.upload(value, user)}
    if isinstance(value, dict):
        return {key: await uploaded(client, user, item) for key, item in value.items()}
    if isinstance(value, list):
        return [await uploaded(client, user, item) for item in value]
    return value


def _inline(value: JsonObject) -> Upload:
    name = str(value["name"]).strip()
    if not name or len(name) > 200:
        raise BadFile("needs a `name` of 1 to 200 characters")
    try:
        content = (
            base64.b64decode(str(value["base64"]), validate=True)
            if "base64" in value
            else str(value["text"]).encode("utf-8", "replace")
        )
    except ValueError:
        raise BadFile(f"“{name}”: `base64` is not valid base64") from None
    if len(content) > MOST_BYTES:
        raise BadFile(f"“{name}” has {len(content)} bytes; at most {MOST_BYTES} are sent")
    return Upload(name, mimetypes.guess_type(name)[0] or "application/octet-stream", content)


def _kind(name: str, mime_type: str | None = None) -> str | None:
    """Dify's kind of a file by its name; None where the name does not tell."""
    mime = mime_type or mimetypes.guess_type(name)[0]
    if mime is None:
        return None
    family = mime.partition("/")[0]
    return family if family in ("image", "audio", "video") else "document"


def _is_address(value: Json) -> bool:
    return isinstance(value, str) and value.startswith(("http://", "https://")) and bool(urlsplit(value).netloc)
