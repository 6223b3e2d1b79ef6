"""The file ledger's tables: `files` says what there is, `file_uses` which task needs it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, ForeignKey, Index, text
from sqlmodel import Field, SQLModel

from board.db.schema import BigId, id_field, json_field, table_of, text_field, time_field

HAS_RECIPE = text("recipe IS NOT NULL")


class File(SQLModel, table=True):
    """One file. Its bytes stand in the storage under their SHA-256; files of equal content share them."""

    __tablename__ = "files"
    __table_args__ = (
        Index("ix_files_content", "sha256"),
        Index("ix_files_created", "created_at", "id"),
        Index("ix_files_recipe", "recipe", sqlite_where=HAS_RECIPE, postgresql_where=HAS_RECIPE),
    )

    id: int = id_field()
    file_id: str = Field(max_length=40, unique=True)  # what the wire shows: random, so that nobody can guess one
    sha256: str = Field(max_length=64)
    bytes: int = Field(sa_column=Column(BigInteger(), nullable=False))
    name: str = text_field(nullable=False)
    type: str = Field(max_length=120)  # media type, judged by content
    # "key:NAME", "user:EMAIL", "task:<internal id>" where work made it, "board:preview" where the board drew a page
    requester: str = Field(max_length=200)
    created_at: datetime = time_field(nullable=False)
    recipe: str | None = Field(default=None, max_length=64)  # of what work has made: what it follows from
    facts: dict[str, Any] | None = json_field()


class FileUse(SQLModel, table=True):
    """A task needs a file, as what goes in or as what came out. Goes when the task is archived."""

    __tablename__ = "file_uses"
    __table_args__ = (Index("ix_file_uses_task", "task"),)

    file: int = Field(
        sa_column=Column(BigId, ForeignKey("files.id"), primary_key=True, nullable=False, autoincrement=False)
    )
    task: int = Field(
        sa_column=Column(
            BigId, ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=True, nullable=False, autoincrement=False
        )
    )


files = table_of(File)
file_uses = table_of(FileUse)
