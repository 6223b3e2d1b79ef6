"""Commands that are loaded when they are called: `board --help` and a wrong word need nothing of the board itself."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

# No tracebacks, which hold the values of variables; plain text: no boxes around errors in logs.
PLAIN: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}


class Entry(NamedTuple):
    """place: file and name in board.cli, such as `tasks:submit`; a function, or a group of commands."""

    place: str
    help: str


class Commands(MutableMapping[str, Any]):
    """Looks like a dictionary of commands; each is made when it is asked for."""

    def __init__(self, entries: dict[str, Entry]) -> None:
        self.entries = entries
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _made(name, self.entries[name].place)
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self.entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


def _made(name: str, place: str) -> Any:
    module, _, attribute = place.partition(":")
    found = getattr(import_module(f"board.cli.{module}"), attribute)
    around = typer.Typer(**PLAIN)  # how a group looks is said by the one around it
    around.callback()(lambda: None)
    if isinstance(found, typer.Typer):
        around.add_typer(found, name=name)
    else:
        around.command(name)(found)
    group = typer.main.get_command(around)
    assert isinstance(group, TyperGroup)
    return group.commands[name]


def group_of(entries: dict[str, Entry]) -> type[TyperGroup]:
    """A group with these commands, for `typer.Typer(cls=…)`."""

    class Lazy(TyperGroup):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            self.commands = Commands(entries)

        def format_commands(self, _ctx: Any, formatter: Any) -> None:
            with formatter.section("Commands"):
                formatter.write_dl([(name, entry.help) for name, entry in entries.items()])

    return Lazy
