"""Files of the Service API: POST /files/upload, and the check of files that a run names."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from integrations.demo.apps import DemoApp
from integrations.demo.wire import DifyError, JsonObject, invalid_param, json_answer

MIB = 1024 * 1024
LIMITS = {"image": 10 * MIB, "document": 15 * MIB, "audio": 50 * MIB, "video": 100 * MIB}  # Dify's defaults
METHODS = ("remote_url", "local_file")


@dataclass(slots=True)
class Upload:
    """One stored upload; its bytes are not kept, nobody reads them here."""

    app: DemoApp
    user: str
    name: str
    size: int
    mime_type: str
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created_at: int = field(default_factory=lambda: int(time.time()))

    @property
    def kind(self) -> str:
        family = self.mime_type.partition("/")[0]
        return family if family in LIMITS else "document"

    def shown(self) -> JsonObject:
        return {
            "id": self.id,
            "name": self.name,
            "size": self.size,
            "extension": self.name.rpartition(".")[2].lower(),
            "mime_type": self.mime_type,
            "created_by": self.user,
            "created_at": self.created_at,
            "source_url": "",
        }


class Uploads:
    """All uploads of one stand-in by id."""

    def __init__(self) -> None:
        self.by_id: dict[str, Upload] = {}

    async def receive(self, request: Request, app: DemoApp) -> Response:
        """201 with the new upload. Raises DifyError for everything but exactly one file of one user."""
        async with request.form() as form:
            user = form.get("user")
            files = [value for _, value in form.multi_items() if isinstance(value, UploadFile)]
            if not files:
                raise DifyError(400, "no_file_uploaded", "Please upload your file.")
            if len(files) > 1:
                raise DifyError(400, "too_many_files", "Only one file is allowed.")
            if not isinstance(user, str) or not user:
                raise invalid_param("Arg user must be provided.")
            sent = files[0]
            if not sent.filename:
                raise DifyError(400, "filename_not_exists_error", "The specified filename does not exist.")
            mime_type = (sent.content_type or "application/octet-stream").partition(";")[0]
            upload = Upload(app, user, sent.filename, sent.size or 0, mime_type)
        if upload.size > LIMITS[upload.kind]:
            raise DifyError(413, "file_too_large", "")
        self.by_id[upload.id] = upload
        return json_answer(upload.shown(), 201)

    def check(self, items: list[Any], app: DemoApp, user: str) -> list[JsonObject]:
        """The files of a run, as given. Raises DifyError when one is malformed, unknown or another user's."""
        for item in items:
            if not isinstance(item, dict) or item.get("transfer_method") not in METHODS:
                raise invalid_param("Invalid file: transfer_method must be remote_url or local_file.")
            if item.get("type") not in (*LIMITS, "custom"):
                raise invalid_param("Invalid file: type must be image, document, audio, video or custom.")
            if item["transfer_method"] == "remote_url":
                if not str(item.get("url") or "").startswith(("http://", "https://")):
                    raise invalid_param("Invalid file url")
                continue
            upload = self.by_id.get(str(item.get("upload_file_id")))
            if upload is None or upload.app is not app or upload.user != user:
                raise invalid_param("Invalid upload file")
            if item["type"] not in (upload.kind, "custom"):
                raise invalid_param("Detected file type does not match the specified type. Please verify the file.")
        return items


def files_of(app: DemoApp, inputs: JsonObject, files: object) -> list[Any]:
    """All file items of a request: the app-level list and the values of file variables."""
    if files is not None and not isinstance(files, list):
        raise invalid_param("files must be a list.")
    items = list(files or [])
    for variable in app.variables:
        value = inputs.get(variable.name)
        if variable.kind == "file" and value is not None:
            items.append(value)
        elif variable.kind == "file-list" and value is not None:
            items += value if isinstance(value, list) else [value]
    return items
