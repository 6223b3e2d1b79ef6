"""The format of a task type, as people write it in YAML. Unknown keys are refused."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from board.catalogue.fields import (
    Assignee,
    Block,
    CallLimits,
    Duration,
    Expression,
    Name,
    Retention,
    Schema,
    Template,
    Templates,
)
from board.catalogue.review_spec import ReviewSpec


def _form_of_priority(value: Any) -> str:
    if isinstance(value, list):
        return "rules"
    return "template" if isinstance(value, str) and "{" in value else "value"


Priority = Literal["P0", "P1", "P2", "P3"]
PRIORITIES: tuple[Priority, ...] = get_args(Priority)


class Title(Block):
    en: str | None = None
    zh_CN: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Title:
        if not (self.en or self.zh_CN):
            raise ValueError("needs a text in en or zh_CN")
        return self


class PriorityRule(Block):
    """when left out: holds always."""

    when: Expression | None = None
    use: Priority


def _reachable(rules: list[PriorityRule]) -> list[PriorityRule]:
    if not rules:
        raise ValueError("give at least one rule, such as {use: P2}")
    for number, rule in enumerate(rules[:-1]):
        if rule.when is None:
            raise ValueError(f"rule [{number}] has no when and holds always, so none after it is ever asked")
    return rules


# A value, a template, or rules of which the first that holds counts. Told apart by their form, so that a fault is told
# of the form that its writer meant.
PriorityChoice = Annotated[
    Annotated[Priority, Tag("value")]
    | Annotated[Template, Tag("template")]
    | Annotated[list[PriorityRule], AfterValidator(_reachable), Tag("rules")],
    Discriminator(_form_of_priority),
]


class CustomField(Block):
    name: Name
    kind: Literal["text", "number", "choice", "date", "person"] = "text"
    options: list[str] = Field(default=[])
    title: str | Title | None = None


class JudgementPaths(Block):
    """Where in the result the parts of the judgement stand, as dotted paths."""

    summary: str | None = None
    advice: str | None = None
    verdict: str | None = None
    confidence: str | None = None
    reasons: str | None = None
    risks: str | None = None

    @cached_property
    def named(self) -> dict[str, str]:
        """Those that the type names. Read for every result, so they are looked for once."""
        return {name: path for name, path in self if path is not None}


class HandlerSpec(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)  # options of the handler's own; checked against the handler

    use: str
    connection: str | None = None
    inputs: Templates | None = None
    output_schema: Schema | None = None
    judgement: JudgementPaths = JudgementPaths()
    timeout: Annotated[Duration, Field(gt=0, le=86400)] = 120.0
    side_effects: bool | None = None  # left out: the handler's own default
    wait: Literal["stream", "blocking", "callback"] | None = None  # left out: the handler's own default

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class ErrorMatch(Block):
    """All that are given must hold. message: a part of the error's text, case ignored. rule: the handler's own one."""

    status: int | None = None
    code: str | None = None
    message: str | None = None
    rule: str | None = None


class RetryRule(Block):
    when: ErrorMatch
    class_: Literal["transient", "permanent", "quota", "unknown"] = Field(alias="class")


class RetrySpec(Block):
    max: int = Field(default=2, ge=0, le=100)
    base: Duration = 5.0
    cap: Duration = 600.0
    on_permanent: Literal["failed", "needs_review"] = "failed"
    rules: list[RetryRule] = Field(default=[])


class LimitsSpec(CallLimits):
    """With a concurrency_key, `concurrency` holds for each of its values, and is 1 when left out.

    tokens_per_day: tokens of models that the work may use in a day of the board's zone.
    """

    concurrency_key: Template | None = None
    tokens_per_day: int | None = Field(default=None, ge=1)
    order_by: Literal["age", "size"] = "age"


class ActionSpec(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    use: str
    connection: str | None = None
    operation_key: Template | None = None
    inputs: Templates | None = None

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


CallbackEvent = Literal["done", "failed", "cancelled", "needs_review"]


class CallbackSpec(Block):
    events: list[CallbackEvent] = Field(default=["done", "failed", "cancelled"])


class TypeSpec(Block):
    """One kind of work. Durations are seconds."""

    name: Name
    title: str | Title | None = None
    task_id: Template | None = None
    require_id: bool | None = None
    priority: PriorityChoice = "P2"
    owner: Assignee | None = None
    payload_schema: Schema | None = None
    fields: list[CustomField] = Field(default=[])
    handler: HandlerSpec
    retry: RetrySpec = RetrySpec()
    limits: LimitsSpec = LimitsSpec()
    review: ReviewSpec = ReviewSpec()
    action: ActionSpec | None = None
    callback: CallbackSpec = CallbackSpec()
    max_crashes: int = Field(default=3, ge=1, le=100)
    retention: Retention = 30 * 86400.0  # how long an ended task stays before it is archived; None: for ever

    @property
    def resumes(self) -> bool:
        """Whether a flow waits at the task's callback_url for the result."""
        return self.action is not None and self.action.use == "resume"

    @property
    def review_when(self) -> str:
        return self.review.when or ("always" if self.handler.use == "none" else "never")

    def shown_title(self, lang: str) -> str:
        """The type's title in a language, else in any, else its name."""
        if isinstance(self.title, Title):
            return getattr(self.title, lang, None) or self.title.en or self.title.zh_CN or self.name
        return self.title or self.name
