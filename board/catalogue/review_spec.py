"""When a person is asked about a task of a type, who may decide, and until when."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from board.catalogue.fields import Block, Duration, Expression, Template


class ReviewRule(Block):
    confidence_below: float | None = Field(default=None, ge=0, le=1)
    risks: Literal["any"] | None = None
    output: Expression | None = None

    @model_validator(mode="after")
    def _one(self) -> ReviewRule:
        if len(self.model_fields_set) != 1:
            raise ValueError("give exactly one of confidence_below, risks and output")
        return self


class ReviewSpec(Block):
    """When a person is asked, and how."""

    when: Literal["always", "never", "rules"] | None = None  # left out: never; for handler none: always
    rules: list[ReviewRule] = Field(default=[])
    sample: float = Field(default=0, ge=0, le=100)
    reviewers: list[str] = Field(default=[])
    approvals: int = Field(default=1, ge=1, le=20)
    four_eyes: bool = False
    risk: Template = "low"
    due: Duration | None = None
    on_expire: Literal["escalate", "cancel", "fail", "approve"] = "escalate"
    editable: list[str] = Field(default=[])
    max_rounds: int = Field(default=5, ge=1, le=100)
    grace: Annotated[Duration, Field(ge=0, le=300)] = 10.0

    @model_validator(mode="after")
    def _says_a_risk(self) -> ReviewSpec:
        if self.risk not in ("low", "medium", "high") and "{" not in self.risk:
            raise ValueError("risk must be low, medium or high, or a template that gives one of them")
        return self

    @model_validator(mode="after")
    def _expires_as_it_may(self) -> ReviewSpec:
        if self.due is not None and self.due <= 0:
            raise ValueError("due must be longer than nothing")
        if self.due is None and "on_expire" in self.model_fields_set and self.on_expire != "escalate":
            raise ValueError("on_expire needs due: without it nothing expires")
        if self.on_expire == "approve" and (self.four_eyes or self.approvals > 1 or self.risk != "low"):
            raise ValueError("only what one person may approve, at low risk, can be approved by the clock")
        return self
