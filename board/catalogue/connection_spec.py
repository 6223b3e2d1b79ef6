"""The format of a connection, as people write it in YAML. Unknown keys are refused."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from board.catalogue.fields import Block, CallLimits, Duration, Name, template
from board.catalogue.status_spec import StatusAnswer
from board.effects.signing import problem_of


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
    claims: Annotated[dict[str, Any], AfterValidator(_claims)] = Field(default={})


class AuthSpec(Block):
    """What the receiver checks by itself, beside the signature."""

    header: Annotated[dict[str, str], AfterValidator(_header_names)] = Field(default={})
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


def _chat_address(given: Any) -> Any:
    """The address of a chat's robot is its password: all of it becomes the key, and its host is what is shown."""
    if not isinstance(given, dict) or given.get("kind") not in CHATS:
        return given
    if given["kind"] == "telegram":
        return {"url": "https://api.telegram.org", **given}
    whole = given.get("key") or given.get("url")
    if not isinstance(whole, str) or not re.match(r"^https?://[^/\s@?]+/[^\s]", whole):
        raise ValueError("must be the whole address that the chat gave you for its robot, beginning with https://")
    if ".webhook.office.com" in whole:
        raise ValueError("is of the connectors that Microsoft has ended; make a webhook with Workflows instead")
    return {**given, "key": whole, "url": "{0.scheme}://{0.netloc}".format(urlsplit(whole))}


# Group chats, each with a robot of its own. feishu is Lark too.
CHATS = ("feishu", "dingtalk", "wecom", "slack", "teams", "telegram")


class ConnectionSpec(Block):
    """Where to call. `key`, `secret` and `auth` are stored encrypted."""

    name: Name
    kind: Literal["dify", "webhook", "mail", "files", "feishu", "dingtalk", "wecom", "slack", "teams", "telegram"]
    url: Annotated[str, Field(max_length=2000), AfterValidator(_address)]
    key: str | None = None
    secret: Annotated[str | list[str], AfterValidator(_secret)] | None = None
    auth: AuthSpec | None = None
    sender: Annotated[str, Field(min_length=1, max_length=320)] | None = None  # mail: who writes, `Name <address>`
    region: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,60}$")] | None = None  # files: the server speaks S3
    chat: Annotated[str | int, Field(union_mode="left_to_right")] | None = None  # telegram: which chat
    thread: Annotated[int, Field(gt=0)] | None = None  # telegram: which topic of it
    idempotent: bool = False
    grace: Duration | None = None  # how long a lost call is looked for at the target before it counts as not started
    reconcile_for: Annotated[Duration, Field(gt=0, le=7 * 86400)] | None = None  # how long it is asked about at all
    status_url: Annotated[str, Field(max_length=2000), AfterValidator(template)] | None = None
    status_answer: StatusAnswer | None = None
    limits: CallLimits = CallLimits()

    @model_validator(mode="before")
    @classmethod
    def _of_a_chat(cls, given: Any) -> Any:
        return _chat_address(given)

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
        if self.kind != "files" and self.region:
            raise ValueError("region is for connections of kind files")
        if self.status_url is not None and (self.kind != "webhook" or _origin(self.status_url) != _origin(self.url)):
            raise ValueError("status_url is for webhooks, and must be on the host and port of url")
        if (self.kind == "mail") != self.url.startswith("smtp"):
            raise ValueError(f"the url of a {self.kind} connection begins with {_BEGINS[self.kind == 'mail']}")
        return self

    @model_validator(mode="after")
    def _fits_chat(self) -> ConnectionSpec:
        if self.kind != "telegram" and (self.chat is not None or self.thread is not None):
            raise ValueError("chat and thread are for connections of kind telegram")
        if self.kind not in CHATS:
            return self
        if self.kind == "telegram" and not (self.key and re.fullmatch(r"\d+:[A-Za-z0-9_-]+", self.key) and self.chat):
            raise ValueError("a telegram connection needs key, the bot's token, and chat, the number of the chat")
        if self.auth or (self.secret and not (self.kind in ("feishu", "dingtalk") and isinstance(self.secret, str))):
            raise ValueError(f"a {self.kind} connection takes no auth, and one secret only where its robot signs")
        return self

    @model_validator(mode="after")
    def _fits_files(self) -> ConnectionSpec:
        if self.kind != "files":
            return self
        if self.region and not (self.key and isinstance(self.secret, str)):
            raise ValueError("a files connection with a region speaks S3, and needs key and secret of the bucket")
        if self.region and self.auth:
            raise ValueError("a files connection with a region signs its calls with key and secret; leave auth out")
        if not self.region and (self.key or self.secret):
            raise ValueError("key and secret are those of S3, which needs region too; other servers take auth")
        if self.auth and self.auth.jwt:
            raise ValueError("a files connection signs in with auth: {basic: …} or auth: {header: …}")
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
