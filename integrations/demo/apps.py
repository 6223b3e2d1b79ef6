"""The Dify apps that the stand-in pretends to hold: one key, one app, one start form, one judge."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from integrations.demo.faults import without_marker
from integrations.demo.judges import articles, complaints, leads
from integrations.demo.wire import JsonObject, invalid_param

Judge = Callable[[Mapping[str, str]], JsonObject]

_NAMESPACE = uuid.UUID("6f0a3f0e-6d5b-4e43-9a53-3f3c8d7a51c1")  # ours: keeps app and workflow ids the same for ever


@dataclass(frozen=True, slots=True)
class Variable:
    """One field of an app's start form. kind: text-input, paragraph, file, file-list (facts: these take strings)."""

    name: str
    label: str
    kind: str = "paragraph"
    required: bool = False
    max_length: int = 20000

    def form_item(self) -> JsonObject:
        """As GET /parameters lists it: an object with one key."""
        common = {"variable": self.name, "label": self.label, "required": self.required, "default": ""}
        return {self.kind: common | {"max_length": self.max_length, "options": []}}

    def checked(self, value: Any) -> Any:
        """The value as the run gets it. Raises DifyError with Dify's wording."""
        if value is None or value == "":
            if self.required:
                raise invalid_param(f"{self.name} is required in input form")
            return None
        if self.kind in ("file", "file-list"):
            return value
        if not isinstance(value, str):
            raise invalid_param(f"(type '{self.kind}') {self.name} in input form must be a string")
        if len(value) > self.max_length:
            raise invalid_param(f"{self.name} in input form must be less than {self.max_length} characters")
        return value


COMMON = (
    Variable("instruction", "What a person asked to change"),
    Variable("former", "The answer that person saw"),
    Variable("board_ref", "Reference of the caller", "text-input", max_length=30),
    Variable("attachment", "A file to look at", "file"),
    Variable("standin_fault", "Demo stand-in: the fault to play", "text-input", max_length=200),
)


@dataclass(frozen=True, slots=True)
class DemoApp:
    """One app. `judge` gets the checked inputs, all texts, and gives the End node's outputs."""

    key: str
    name: str
    description: str
    variables: tuple[Variable, ...]
    judging: Judge
    mode: str = "workflow"

    @property
    def id(self) -> str:
        return str(uuid.uuid5(_NAMESPACE, f"app:{self.key}"))

    @property
    def workflow_id(self) -> str:
        return str(uuid.uuid5(_NAMESPACE, f"workflow:{self.key}"))

    def accept(self, inputs: Mapping[str, Any]) -> JsonObject:
        """The declared inputs, checked; unknown ones are dropped without a word. Raises DifyError."""
        accepted = {variable.name: variable.checked(inputs.get(variable.name)) for variable in self.variables}
        return {name: value for name, value in accepted.items() if value is not None}

    def judge(self, inputs: JsonObject) -> JsonObject:
        texts = {name: without_marker(value) for name, value in inputs.items() if isinstance(value, str)}
        return self.judging(texts)


def _app(
    key: str, name: str, description: str, own: tuple[Variable, ...], judge: Judge, mode: str = "workflow"
) -> DemoApp:
    said = f"{description} No AI is at work here."
    return DemoApp(key, f"{name} (Demo stand-in)", said, own + COMMON, judge, mode)


APPS = {
    app.key: app
    for app in (
        _app(
            "app-demo-leads",
            "Leads",
            "Judges how promising an inquiry is.",
            (Variable("text", "The inquiry", required=True), Variable("company", "Company", "text-input")),
            leads.judge,
        ),
        _app(
            "app-demo-complaints",
            "Complaints",
            "Sorts a complaint and drafts a reply.",
            (Variable("text", "The complaint", required=True), Variable("order", "Order number", "text-input")),
            complaints.judge,
        ),
        _app(
            "app-demo-articles",
            "Articles",
            "Checks a text before it is published.",
            (Variable("text", "The article", required=True), Variable("title", "Its title", "text-input")),
            articles.judge,
        ),
        # Chat-type apps judge what is said to them.
        _app("app-demo-chat", "Complaints chat", "Answers a complaint.", (), complaints.judge, "chat"),
        _app("app-demo-agent-chat", "Complaints agent", "Answers a complaint.", (), complaints.judge, "agent-chat"),
        _app("app-demo-agent", "New agent", "Answers a complaint.", (), complaints.judge, "agent"),
        _app("app-demo-chatflow", "Leads chatflow", "Judges an inquiry.", (), leads.judge, "advanced-chat"),
        _app(
            "app-demo-text",
            "Article text",
            "Checks a text before it is published.",
            (Variable("text", "The article", required=True), Variable("title", "Its title", "text-input")),
            articles.judge,
            "completion",
        ),
    )
}
