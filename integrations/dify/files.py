"""The files that go to Dify with a run: by their address, or uploaded under the very user of the run.

Dify takes an upload only from the user who starts the run, so every attempt uploads anew.
"""

from __future__ import annotations

import base64
import mimetypes
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from board.ports import JobFiles, Json, JsonObject
from integrations.dify.client import Client, Upload

KINDS = ("document", "image", "audio", "video", "custom")
MIB = 1024**2
# Dify's own limits as it is delivered. A Dify that allows more gets it by address.
MOST_BYTES = {"document": 15 * MIB, "image": 10 * MIB, "audio": 50 * MIB, "video": 100 * MIB, "custom": 15 * MIB}


class BadFile(ValueError):
    """What stands for a file is none that can be sent. The message is a plain clause."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file that the board keeps. kind: Dify's, where it was given."""

    file_id: str
    kind: str | None = None


def file_item(value: Json) -> JsonObject | Upload | Stored:
    """A file as Dify takes it, or one that must be uploaded first. Raises BadFile.

    Taken: {file} of the board; Dify's own item {type, transfer_method, url or upload_file_id}; {url, type?}; an address
    as text; {name, base64} or {name, text}.
    """
    if isinstance(value, str):
        value = {"url": value}
    if not isinstance(value, dict):
        raise BadFile('must be a file: an address, {"url": …}, {"name": …, "base64": …} or Dify\'s own file item')
    if isinstance(stored := value.get("file") or value.get("file_id"), str):
        kind = value.get("type")
        return Stored(stored, kind if kind in KINDS else None)
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


async def uploaded(client: Client, user: str, value: Any, files: JobFiles) -> Any:
    """The same value with every file in it that Dify does not fetch stored there and named by its id.

    Raises BadFile for one that is too large, and what the client and the board's files raise.
    """
    if isinstance(value, Upload):
        return await _placed(client, user, value, None)
    if isinstance(value, Stored):
        return await _placed(client, user, await _read(value, files), value.kind)
    if isinstance(value, dict):
        return {key: await uploaded(client, user, item, files) for key, item in value.items()}
    if isinstance(value, list):
        return [await uploaded(client, user, item, files) for item in value]
    return value


async def _placed(client: Client, user: str, file: Upload, kind: str | None) -> JsonObject:
    kind = kind or _kind(file.name, file.mime_type) or "document"
    return {"type": kind, "transfer_method": "local_file", "upload_file_id": await client.upload(file, user)}


async def _read(stored: Stored, files: JobFiles) -> Upload:
    about = await files.about(stored.file_id)
    most = MOST_BYTES[stored.kind or _kind(about.name, about.type) or "document"]
    if about.bytes > most:
        raise BadFile(f"“{about.name}” has {about.bytes} bytes; Dify takes at most {most} of its kind")
    return Upload(about.name, about.type, b"".join([piece async for piece in files.read(stored.file_id)]))


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
    most = MOST_BYTES[_kind(name) or "document"]
    if len(content) > most:
        raise BadFile(f"“{name}” has {len(content)} bytes; Dify takes at most {most} of its kind")
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
