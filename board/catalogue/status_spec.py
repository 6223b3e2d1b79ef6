"""How the answer of a receiver's status address is read, as people write it in a connection."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

# What receivers usually say. A list that the connection names takes the place of the usual one.
CONFIRMED = ("confirmed", "succeeded", "success", "done", "completed", "ok")
REJECTED = ("rejected", "failed", "error", "cancelled")
PENDING = ("pending", "processing", "running", "queued", "accepted", "received")
MISSING = ("not_found",)


def _lower(words: list[str]) -> list[str]:
    return [word.strip().lower() for word in words]


Words = Annotated[list[str], Field(min_length=1, max_length=50), AfterValidator(_lower)]


class StatusAnswer(BaseModel):
    """Where in the JSON answer the status stands, and what its words mean. Paths are dotted names; case is ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    field: str = "status"
    reference: str = "reference"  # the receiver's own number of what was done
    confirmed: Words = list(CONFIRMED)
    rejected: Words = list(REJECTED)
    pending: Words = list(PENDING)
    missing: Words = list(MISSING)

    def meaning(self, word: Any) -> str | None:
        """confirmed, rejected, pending or missing; None for a word that nobody has named."""
        text = str(word).strip().lower()
        lists = {
            "confirmed": self.confirmed,
            "rejected": self.rejected,
            "pending": self.pending,
            "missing": self.missing,
        }
        return next((name for name, words in lists.items() if text in words), None)
