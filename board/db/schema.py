"""What the tables of all rooms share: column helpers, and the table behind an SQLModel class."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from sqlalchemy import BigInteger, Column, Integer, Table, Text
from sqlmodel import Field, SQLModel

from board.db.types import JsonText, UtcTime

# SQLite counts up by itself only in a column of the very type INTEGER; PostgreSQL needs 64 bits.
BigId = BigInteger().with_variant(Integer(), "sqlite")


def id_field() -> Any:
    return Field(default=None, sa_column=Column(BigId, primary_key=True, autoincrement=True))


def time_field(*, nullable: bool = True, index: bool = False) -> Any:
    return Field(default=None, sa_column=Column(UtcTime(), nullable=nullable, index=index))


def json_field(*, nullable: bool = True) -> Any:
    return Field(default=None, sa_column=Column(JsonText(), nullable=nullable))


def text_field(*, nullable: bool = True, default: str | None = None) -> Any:
    return Field(default=default, sa_column=Column(Text(), nullable=nullable))


def sealed_field() -> Any:
    """Text that the vault encrypted (`Vault.encrypt`), or empty. Found by its mark when the encryption key changes."""
    return Field(default="", sa_column=Column(Text(), nullable=False, info={"sealed": True}))


def table_of(model: type[SQLModel]) -> Table:
    """The Core table of a model class: all our statements are Core, the classes only describe."""
    return cast(Table, model.__table__)  # type: ignore[attr-defined]


class Meta(SQLModel, table=True):
    """What holds for the whole installation: its id, the fingerprint of the encryption key."""

    __tablename__ = "board_meta"

    key: str = Field(primary_key=True)
    value: str
    set_at: datetime = time_field(nullable=False)
