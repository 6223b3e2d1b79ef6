"""The format of a task type and of a connection, as people write it in YAML. Unknown keys are refused."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from board import templating
from board.catalogue.shape import problem_of_schema
from board.catalogue.status_spec import StatusAnswer
from board.effects.signing import problem_of
from board.rates import parse_rate
from board.settings import parse_duration

NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$")


def _duration(value: Any) -> float:
    if isinstance(value, bool | int | float):
        raise ValueError(f"“{value}” has no unit; write {value}s, {value}m or {value}h")
    return parse_duration(value)


def _retention(value: Any) -> float | None:
    return None if value == "forever" else _duration(value)


def _name(value: str) -> str:
    if not NAME.match(value):
        raise ValueError(
            "use letters, digits, dot, underscore and hyphen, at most 120, starting with a letter or digit"
        )
    return value


def _template(value: Any) -> Any:
    if problem := templating.check(value):
        raise ValueError(problem)
    return value


def _expression(value: str) -> str:
    if problem := templating.check_expression(value):
        raise ValueError(problem)
    return value


def _rate(value: str) -> str:
    parse_rate(value)
    return value


def _schema(value: dict[str, Any]) -> dict[str, Any]:
    if problem := problem_of_schema(value):
        raise ValueError(problem)
    return value


def _form_of_priority(value: Any) -> str:
    if isinstance(value, list):
        return "rules"
    return "template" if isinstance(value, str) and "{" in value else "value"


Duration = Annotated[float, BeforeValidator(_duration)]
Retention = Annotated[float | None, BeforeValidator(_retention)]
Name = Annotated[str, AfterValidator(_name)]
Template = Annotated[str, AfterValidator(_template)]
Expression = Annotated[str, AfterValidator(_expression)]
Schema = Annotated[dict[str, Any], AfterValidator(_schema)]
Priority = Literal["P0", "P1", "P2", "P3"]
PRIORITIES: tuple[Priority, ...] = get_args(Priority)


class Block(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


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
    options: list[str] = []
    title: str | Title | None = None


class JudgementPaths(Block):
    """Where in the result the parts of the judgement stand, as dotted paths."""

    summary: str | None = None
    advice: str | None = None
    verdict: str | None = None
    confidence: str | None = None
    reasons: str | None = None
    risks: str | None = None


class HandlerSpec(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)  # options of the handler's own; checked against the handler

    use: str
    connection: str | None = None
    inputs: Annotated[dict[str, Any], AfterValidator(_template)] | None = None
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
    rules: list[RetryRule] = []


class CallLimits(Block):
    """How much may run at once, begin in a time, and begin in a day of the board's zone. None: no limit."""

    concurrency: int | None = Field(default=None, ge=1)
    rate: Annotated[str, AfterValidator(_rate)] | None = None
    per_day: int | None = Field(default=None, ge=1)


class LimitsSpec(CallLimits):
    """With a concurrency_key, `concurrency` holds for each of its values, and is 1 when left out.

    tokens_per_day: tokens of models that the work may use in a day of the board's zone.
    """

    concurrency_key: Template | None = None
    tokens_per_day: int | None = Field(default=None, ge=1)
    order_by: Literal["age", "size"] = "age"


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
    rules: list[ReviewRule] = []
    sample: float = Field(default=0, ge=0, le=100)
    reviewers: list[str] = []
    approvals: int = Field(default=1, ge=1, le=20)
    four_eyes: bool = False
    risk: Template = "low"
    due: Duration | None = None
    on_expire: Literal["escalate", "cancel", "fail", "approve"] = "escalate"
    editable: list[str] = []
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


class ActionSpec(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    use: str
    connection: str | None = None
    operation_key: Template | None = None
    inputs: Annotated[dict[str, Any], AfterValidator(_template)] | None = None

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


CallbackEvent = Literal["done", "failed", "cancelled", "needs_review"]


class CallbackSpec(Block):
    events: list[CallbackEvent] = ["done", "failed", "cancelled"]


class TypeSpec(Block):
    """One kind of work. Durations are seconds."""

    name: Name
    title: str | Title | None = None
    task_id: Template | None = None
    require_id: bool | None = None
    priority: PriorityChoice = "P2"
    owner: str | None = None
    payload_schema: Schema | None = None
    fields: list[CustomField] = []
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


class BasicAuth(Block):
    user: str
    password: str = ""


def _header_names(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
            raise ValueError(f"“{name}” is not the name of a header")
        if not text.isprintable() or not text.isascii() or text != text.strip():
            raise ValueError(f"the value of {name} may hold only printable ASCII characters")
    return value


def _claims(value: dict[str, Any]) -> dict[str, Any]:
    for name in ("iat", "exp", "jti"):
        if name in value:
            raise ValueError(f"leave {name} out; it is made anew for every call")
    return value


class JwtAuth(Block):
    """A token made for each call: iss, iat, exp (5 minutes), jti, and further claims."""

    secret: str = Field(min_length=1)
    algorithm: Literal["HS256"] = "HS256"
    claims: Annotated[dict[str, Any], AfterValidator(_claims)] = {}


class AuthSpec(Block):
    """What the receiver checks by itself, beside the signature."""

    header: Annotated[dict[str, str], AfterValidator(_header_names)] = {}
    basic: BasicAuth | None = None
    jwt: JwtAuth | None = None

    @model_validator(mode="after")
    def _one(self) -> AuthSpec:
        if bool(self.header) + (self.basic is not None) + (self.jwt is not None) != 1:
            raise ValueError("give exactly one of header, basic and jwt")
        return self


def _secret(value: str | list[str]) -> str | list[str]:
    if problem := problem_of(value):
        raise ValueError(problem)
    return value


def _address(value: str) -> str:
    if re.match(r"^smtp(s|\+plain)?://(\[[0-9a-fA-F:.]+\]|[^/\s@:?#]+)(:\d{1,5})?/?$", value):
        return value
    if not re.match(r"^https?://[^/\s@]+(/|$|\?)", value) or re.search(r"\s", value):
        raise ValueError(
            "must be an address that starts with http:// or https://, or for mail with smtps:// or smtp://, without a "
            "user name or password"
        )
    return value


def _origin(address: str) -> tuple[str, str]:
    parts = urlsplit(address.lower())
    return parts.scheme, parts.netloc


_BEGINS = {True: "smtps://, smtp:// or smtp+plain://", False: "http:// or https://"}


class ConnectionSpec(Block):
    """Where to call. `key`, `secret` and `auth` are stored encrypted."""

    name: Name
    kind: Literal["dify", "webhook", "mail"]
    url: Annotated[str, Field(max_length=2000), AfterValidator(_address)]
    key: str | None = None
    secret: Annotated[str | list[str], AfterValidator(_secret)] | None = None
    auth: AuthSpec | None = None
    sender: Annotated[str, Field(min_length=1, max_length=320)] | None = None  # mail: who writes, `Name <address>`
    idempotent: bool = False
    grace: Duration | None = None  # how long a lost call is looked for at the target before it counts as not started
    reconcile_for: Annotated[Duration, Field(gt=0, le=7 * 86400)] | None = None  # how long it is asked about at all
    status_url: Annotated[str, Field(max_length=2000), AfterValidator(_template)] | None = None
    status_answer: StatusAnswer | None = None
    limits: CallLimits = CallLimits()

    @model_validator(mode="after")
    def _fits_kind(self) -> ConnectionSpec:
        if self.kind == "dify" and not self.key:
            raise ValueError("a dify connection needs key, the app's API key")
        if self.kind == "dify" and (self.secret or self.auth):
            raise ValueError("a dify connection takes key, not secret or auth")
        if self.kind == "webhook" and self.key:
            raise ValueError("a webhook connection takes secret, not key")
        if self.kind == "webhook" and self.status_url is None and (self.status_answer or self.grace is not None):
            raise ValueError("status_answer and grace are about the answer of status_url; give status_url, too")
        if self.status_url is not None and (self.kind != "webhook" or _origin(self.status_url) != _origin(self.url)):
            raise ValueError("status_url is for webhooks, and must be on the host and port of url")
        if (self.kind == "mail") != self.url.startswith("smtp"):
            raise ValueError(f"the url of a {self.kind} connection begins with {_BEGINS[self.kind == 'mail']}")
        return self

    @model_validator(mode="after")
    def _fits_mail(self) -> ConnectionSpec:
        if (self.kind == "mail") != (self.sender is not None):
            raise ValueError("a mail connection needs sender, the address that writes; others take none")
        if self.kind != "mail":
            return self
        if self.key or self.secret or self.grace is not None or (self.auth and not self.auth.basic):
            raise ValueError("a mail connection signs in with auth: {basic: {user, password}}, and takes nothing else")
        if self.auth and self.url.startswith("smtp+plain:"):
            raise ValueError("a password is not sent over smtp+plain://; use smtps:// or smtp://")
        return self
