"""Reports as they were when their week was over, who wants them by mail, and what became of each mail."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlmodel import Field, SQLModel

from board.db.schema import json_field, table_of, text_field, time_field


class Report(SQLModel, table=True):
    """One week, written once. `figures` is the whole document but for what depends on who reads it."""

    __tablename__ = "reports"

    week: str = Field(primary_key=True, max_length=8)  # 2026-W48; in the order of time
    as_of: datetime = time_field(nullable=False)
    figures: dict[str, Any] = json_field(nullable=False)


class Reader(SQLModel, table=True):
    """Whether somebody wants the report by mail: the last word, also against BOARD_REPORT_TO."""

    __tablename__ = "report_readers"

    person: str = Field(primary_key=True, max_length=254)  # the bare address, in lower case
    wanted: bool
    zone: str | None = Field(default=None, max_length=64)  # of the times in the mail; None: the board's
    changed_at: datetime = time_field(nullable=False)


class Delivery(SQLModel, table=True):
    """The mail of one week to one person. The pair is unique, and the row stands before anything is sent.

    status, in the words of the ledger of side effects: reserved (to be sent at next_try_at), sent (it is being sent, or
    whoever sent it has died), confirmed, rejected, unknown.
    """

    __tablename__ = "report_deliveries"

    week: str = Field(primary_key=True, max_length=8)
    person: str = Field(primary_key=True, max_length=254)
    status: str = Field(max_length=12)
    sendings: int = 1  # how often somebody wanted it sent; each has a Message-ID of its own
    tries: int = 0  # of this sending
    message_id: str | None = Field(default=None, max_length=300)
    answer: str | None = text_field()  # the server's last words, or why there were none
    asked_by: str = Field(max_length=200)  # `timer:board`, or who asked for it
    next_try_at: datetime | None = time_field()
    created_at: datetime = time_field(nullable=False)
    sent_at: datetime | None = time_field()
    closed_at: datetime | None = time_field()


reports = table_of(Report)
readers = table_of(Reader)
deliveries = table_of(Delivery)
