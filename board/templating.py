"""The Jinja sandbox for everything a type computes: IDs, inputs, operation keys, conditions."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from jinja2 import ChainableUndefined, StrictUndefined, Template, TemplateError, Undefined, UndefinedError
from jinja2.environment import TemplateExpression
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from board.tasks.ids import id_safe

# A template makes IDs and inputs, not documents; more is a mistake or an attack, and would fill the database.
MAX_OUTPUT = 1_000_000


# What templates see of a task that is being put in, and of one that is at work; see docs/types.md.
OF_BODY = frozenset({"type", "title", "source", "payload", "tags", "priority", "callback", "today", "now"})
OF_TASK = OF_BODY | {"task_id", "round", "attempt", "review", "result", "judgement", "decision"}


class TemplateProblem(Exception):
    """A template is wrong or cannot be filled in. The text names the expression and is fit for a person."""


class MissingValue(TemplateProblem):
    """What a condition asks about, or an ID or key is made of, is not there; in an ID or key it may not be empty."""


class _Missing(StrictUndefined):
    """An error wherever it is used, but it may be asked for: `payload.a or payload.b`."""

    def __bool__(self) -> bool:  # type: ignore[override]
        return False


class _Sandbox(ImmutableSandboxedEnvironment):
    def getattr(self, obj: Any, attribute: str) -> Any:
        # `payload.items` means the payload's key of that name, never the method of Python's dict: where the key is
        # missing, the method's text with its address in memory would make an ID that is new each time.
        if isinstance(obj, Mapping):
            return obj[attribute] if attribute in obj else self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)


def phone(value: Any) -> str:
    """A phone number in one writing: digits and a leading +, so that `0044 7700 900-123` is `+447700900123`."""
    text = unicodedata.normalize("NFKC", str(value)).strip()
    digits = "".join(str(unicodedata.decimal(character)) for character in text if character.isdecimal())
    if not digits:
        return ""
    if text.startswith("+"):
        return f"+{digits}"
    return f"+{digits[2:]}" if digits.startswith("00") else digits


def sha256(value: Any) -> str:
    return hashlib.sha256(str(value).encode("utf-8", "surrogatepass")).hexdigest()


def _no_method(value: Any) -> Any:
    if callable(value) and not isinstance(value, Undefined):
        raise TemplateProblem("it names a method, not a value.")
    return value


def _environment(undefined: type[Undefined]) -> _Sandbox:
    environment = _Sandbox(undefined=undefined, autoescape=False, cache_size=1000, finalize=_no_method)
    environment.filters |= {"phone": phone, "sha256": sha256, "id_safe": lambda value: id_safe(str(value))}
    return environment


_lenient = _environment(ChainableUndefined)  # inputs: what is missing is empty
_strict = _environment(_Missing)  # IDs and keys: what is missing is an error


# Compiling takes a hundred times as long as filling in, and a type's templates are filled in for each of its tasks.
@lru_cache(maxsize=1000)
def _expression(environment: _Sandbox, text: str) -> TemplateExpression:
    return environment.compile_expression(text, undefined_to_none=environment is _lenient)


@lru_cache(maxsize=1000)
def _template(environment: _Sandbox, text: str) -> Template:
    return environment.from_string(text)


def check(value: Any) -> str | None:
    """What is wrong with the templates in a value (text, list or object), or None."""
    if isinstance(value, str):
        try:
            whole = _whole(value)
            if whole is None:
                _lenient.from_string(value)  # compiles, so that filters which do not exist are found too
            else:
                _lenient.compile_expression(whole)
        except TemplateError as error:
            return f"“{_short(value)}” is not a valid template: {error}"
    elif isinstance(value, Mapping):
        return next(filter(None, (check(item) for item in value.values())), None)
    elif isinstance(value, list):
        return next(filter(None, (check(item) for item in value)), None)
    return None


def check_expression(text: str) -> str | None:
    """What is wrong with a condition such as `label == 'complaint'`, or None."""
    try:
        _lenient.compile_expression(text)
    except TemplateError as error:
        return f"“{_short(text)}” is not a valid expression: {error}"
    return None


def unknown_names(value: Any, known: frozenset[str]) -> list[str]:
    """The names in the templates of a value (text, list or object) that are none of `known`."""
    if isinstance(value, Mapping):
        return [name for item in value.values() for name in unknown_names(item, known)]
    if isinstance(value, list):
        return [name for item in value for name in unknown_names(item, known)]
    if not isinstance(value, str) or "{" not in value:
        return []
    return sorted(find_undeclared_variables(_lenient.parse(value)) - known - _lenient.globals.keys())


def fill(value: Any, context: Mapping[str, Any]) -> Any:
    """Templates filled in, through lists and objects. A text that is exactly one `{{ }}` keeps the value's type.

    What is missing is empty text, or null where the type is kept. Raises TemplateProblem.
    """
    if isinstance(value, Mapping):
        return {key: fill(item, context) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, context) for item in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    try:
        whole = _whole(value)
        if whole is not None:
            return _plain(_expression(_lenient, whole)(dict(context)), value)
        return _bounded(_template(_lenient, value).render(dict(context)), value)
    except TemplateProblem:
        raise
    except Exception as error:
        raise TemplateProblem(f"“{_short(value)}” could not be filled in: {error}") from error


def fill_strict(template: str, context: Mapping[str, Any]) -> str:
    """An ID or key. Raises TemplateProblem naming the expression when one of its values is missing or empty."""
    for expression in _expressions(template):
        try:
            value = _expression(_strict, expression)(dict(context))
            missing = isinstance(value, Undefined) or value is None or callable(value) or str(value).strip() == ""
        except TemplateError:
            missing = True
        except Exception as error:
            raise TemplateProblem(f"“{expression}” could not be computed: {error}") from error
        if missing:
            raise MissingValue(f"“{expression}” is missing or empty.")
    try:
        return _bounded(_template(_strict, template).render(dict(context)), template)
    except TemplateProblem:
        raise
    except Exception as error:
        raise TemplateProblem(f"“{_short(template)}” could not be filled in: {error}") from error


def holds(expression: str, context: Mapping[str, Any]) -> bool:
    """Whether a condition holds. Raises TemplateProblem when it cannot be computed on the values at hand, MissingValue
    where that is because one is missing."""
    try:
        return bool(_expression(_lenient, expression)(dict(context)))
    except UndefinedError as error:
        raise MissingValue(f"“{_short(expression)}” could not be computed: {error}") from error
    except Exception as error:
        raise TemplateProblem(f"“{_short(expression)}” could not be computed: {error}") from error


@lru_cache(maxsize=1000)
def _whole(template: str) -> str | None:
    """The expression of a text that is exactly one `{{ }}` and nothing else."""
    inner: list[str] = []
    ended = False
    for number, (_, kind, text) in enumerate(_lenient.lex(template.strip())):
        if ended or (number == 0) != (kind == "variable_begin"):
            return None
        if kind == "variable_end":
            ended = True
        elif number:
            inner.append(text)
    return "".join(inner) if ended else None


def _plain(value: Any, template: str) -> Any:
    """A value that JSON can hold. Raises TemplateProblem for methods, ranges and the like."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item, template) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, template) for item in value]
    raise TemplateProblem(f"“{_short(template)}” gives {type(value).__name__}, which is no plain value.")


@lru_cache(maxsize=1000)
def _expressions(template: str) -> Sequence[str]:
    """The source of every `{{ … }}` outside control blocks."""
    found: list[str] = []
    current: list[str] | None = None
    depth = 0
    for _, kind, text in _strict.lex(template):
        if kind == "block_begin":
            depth = 1  # from the first {% on, an expression may well be allowed to be empty
        if kind == "variable_begin":
            current = []
        elif kind == "variable_end" and current is not None:
            if not depth:
                found.append("".join(current).strip())
            current = None
        elif current is not None:
            current.append(text)
    return found


def _bounded(text: str, template: str) -> str:
    if len(text) > MAX_OUTPUT:
        raise TemplateProblem(f"“{_short(template)}” makes more than {MAX_OUTPUT} characters.")
    return text


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "…"
