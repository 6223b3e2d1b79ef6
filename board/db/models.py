"""All tables in one place, for migrations: importing this fills the metadata."""

from sqlmodel import SQLModel

from board.access import models as access
from board.catalogue import models as catalogue
from board.db import schema
from board.effects import models as effects
from board.review import models as review
from board.tasks import models as tasks

metadata = SQLModel.metadata

__all__ = ["access", "catalogue", "effects", "metadata", "review", "schema", "tasks"]
