"""YAML that means what its JSON would mean: text, numbers, true, false, null, lists and objects, and no surprises.

Of YAML 1.1 left out are dates (`2026-01-01` stays text), numbers to the base 60 (`19:00` stays text), numbers that
begin with 0, the words `no`, `on` and `yes` as booleans, keys that are not text, and keys that stand twice.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

_TAG = "tag:yaml.org,2002:"
_PLAIN = {
    f"{_TAG}bool": re.compile("^(?:true|false)$"),
    f"{_TAG}int": re.compile("^-?(?:0|[1-9][0-9]*)$"),
    f"{_TAG}float": re.compile(r"^-?(?:0|[1-9][0-9]*)(?=[.eE])(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$"),
    f"{_TAG}null": re.compile("^(?:null|~|)$"),
    f"{_TAG}merge": re.compile("^<<$"),
}


class BadYaml(ValueError):
    """What is wrong and at which line; never the line itself, which may hold a key."""


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {  # noqa: RUF012 - the library's own name and kind
        first: [(tag, _PLAIN[tag]) for tag, _ in resolvers if tag in _PLAIN]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors = {  # noqa: RUF012
        tag: constructor
        for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag in (*_PLAIN, f"{_TAG}str", f"{_TAG}seq", f"{_TAG}map")
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag not in (f"{_TAG}str", f"{_TAG}merge"):
                raise yaml.MarkedYAMLError(problem="a key is not text; put it in quotes", problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"the key “{key.value}” stands twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def load(text: str) -> Any:
    """The document as data. Raises BadYaml."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - it makes even less than the safe one
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise BadYaml(f"{error.problem or error.context}{line}") from error
    except yaml.reader.ReaderError as error:
        raise BadYaml(f"it holds U+{error.character:04X}, which cannot stand there") from error
    except yaml.YAMLError as error:
        raise BadYaml("it cannot be read") from error
    except RecursionError as error:
        raise BadYaml("it is nested too deep") from error
