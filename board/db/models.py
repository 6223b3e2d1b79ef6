"""All tables in one place, for migrations: importing this fills the metadata."""

from sqlmodel import SQLModel

from board.access import models as access
from board.catalogue import models as catalogue
from board.db import schema
from board.effects import models as effects
from board.files import models as files
from board.notices import models as notices
from board.queue import models as queue
from board.reports import models as reports
from board.review import models as review
from board.tasks import models as tasks
from board.upkeep import models as upkeep
from board.worker import models as worker

metadata = SQLModel.metadata

__all__ = [
    "access",
    "catalogue",
    "effects",
    "files",
    "metadata",
    "notices",
    "queue",
    "reports",
    "review",
    "schema",
    "tasks",
    "upkeep",
    "worker",
]
