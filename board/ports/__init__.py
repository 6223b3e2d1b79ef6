"""The one module of the board that integrations may import: what a handler gets, and what it answers.

A handler does the `work` of a task (asks Dify, makes a thumbnail) or its `act` (calls a webhook). It never writes
a task row and never opens a connection of its own: it reads a `Job`, talks through `job.http`, announces every
call that matters outside with `job.send()`, and returns an `Outcome`. Settling is the board's business.
"""

from board.ports.files import (
    ContentGone,
    FileMissing,
    JobFiles,
    Storage,
    StorageError,
    StorageMaker,
    StoredFile,
)
from board.ports.handler import (
    Closing,
    ConnectionUser,
    Demo,
    Handler,
    Tester,
    Tried,
    Withdrawer,
    Withdrawn,
)
from board.ports.http import (
    Answer,
    Content,
    Http,
    HttpError,
    Lost,
    NotSent,
    Refused,
    StreamedAnswer,
)
from board.ports.job import (
    CANCELLED,
    AlreadyConfirmed,
    ConnectionView,
    FormAnswer,
    Job,
    OperationBusy,
    OperationConflict,
    SentOperation,
    Stopped,
)
from board.ports.notifier import Message, Notifier, Told
from board.ports.outcome import (
    AskReason,
    CalledBack,
    Cause,
    ErrorClass,
    Failure,
    Json,
    JsonObject,
    Later,
    NeedsInput,
    NotStarted,
    Outcome,
    Success,
    UnknownOutcome,
    Wait,
)
from board.ports.preview import Drawing, DrawnPage, NotShown, NotShownWhy, Previewer

# Reading and writing of texts and tables, which handlers share with the board's own imports and exports.
from board.sheets.decode import ENCODINGS, BadText, decode
from board.sheets.read import read_table
from board.sheets.read_csv import DELIMITERS
from board.sheets.table import BadTable, Table
from board.sheets.write import WRITTEN, write_csv, write_xlsx

__all__ = [
    "CANCELLED",
    "DELIMITERS",
    "ENCODINGS",
    "WRITTEN",
    "AlreadyConfirmed",
    "Answer",
    "AskReason",
    "BadTable",
    "BadText",
    "CalledBack",
    "Cause",
    "Closing",
    "ConnectionUser",
    "ConnectionView",
    "Content",
    "ContentGone",
    "Demo",
    "Drawing",
    "DrawnPage",
    "ErrorClass",
    "Failure",
    "FileMissing",
    "FormAnswer",
    "Handler",
    "Http",
    "HttpError",
    "Job",
    "JobFiles",
    "Json",
    "JsonObject",
    "Later",
    "Lost",
    "Message",
    "NeedsInput",
    "NotSent",
    "NotShown",
    "NotShownWhy",
    "NotStarted",
    "Notifier",
    "OperationBusy",
    "OperationConflict",
    "Outcome",
    "Previewer",
    "Refused",
    "SentOperation",
    "Stopped",
    "Storage",
    "StorageError",
    "StorageMaker",
    "StoredFile",
    "StreamedAnswer",
    "Success",
    "Table",
    "Tester",
    "Told",
    "Tried",
    "UnknownOutcome",
    "Wait",
    "Withdrawer",
    "Withdrawn",
    "decode",
    "read_table",
    "write_csv",
    "write_xlsx",
]
