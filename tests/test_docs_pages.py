"""The pages about states and commands say what the program does; the two READMEs say the same; no link is dead."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import typer

from board.cli import app as command_line
from board.tasks.states import RULES, Move, Phase, Status

ROOT = Path(__file__).parent.parent
READMES = (ROOT / "README.md", ROOT / "README.zh-CN.md")
PAGES = sorted([*READMES, ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
HIDDEN = {"--json", "--help"}  # said once for all commands


def moves_table() -> list[tuple[str, ...]]:
    """The first four cells of each row in docs/states.md, as the rules have them."""
    rows = []
    for move, rule in RULES.items():
        sources = ", ".join(f"`{status}`" for status in Status if status in rule.sources) or "—"
        if len(rule.phases) == 1:
            sources += f" ({next(iter(rule.phases))})"
        target = f"`{rule.to}`" + (f" ({rule.to_phase})" if rule.to_phase else "")
        rows.append((f"`{move}`", sources, target, ", ".join(sorted(rule.by))))
    return rows


def cells(page: Path, first: str) -> list[tuple[str, ...]]:
    """The rows of the page's tables whose first cell looks like `first`."""
    lines = page.read_text(encoding="utf-8").splitlines()
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if line.startswith("|")]
    return [row for row in rows if re.fullmatch(first, row[0])]


def test_the_table_of_moves_is_the_rules() -> None:
    documented = cells(ROOT / "docs" / "states.md", "`(?:" + "|".join(Move) + ")`")
    assert [row[:4] for row in documented] == moves_table()
    assert all(row[4] for row in documented), "each move says when it is made"


def test_every_state_and_phase_is_explained() -> None:
    named = {row[0].strip("`") for row in cells(ROOT / "docs" / "states.md", "`[a-z_]+`")}
    assert named >= {*Status, *Phase}


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_the_readme_shows_the_seven_states_in_a_table_and_in_a_picture(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [row[0].strip("`") for row in cells(ROOT / page, "`[a-z_]+`")] == list(Status)
    picture = re.search(r"docs/images/states[a-z-]*\.svg", text)
    assert picture is not None
    drawn = (ROOT / picture[0]).read_text(encoding="utf-8")
    assert set(re.findall(r'class="name"[^>]*>([a-z_]+)<', drawn)) == set(Status)


def options(command: Any, path: str) -> Iterator[tuple[str, str]]:
    """(command, option) of every option that a command takes."""
    for name, part in getattr(command, "commands", {}).items():
        yield from options(part, f"{path} {name}")
    if not hasattr(command, "commands"):
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--") and option not in HIDDEN:
                    yield path, option


def test_every_option_of_every_command_is_documented_and_no_other() -> None:
    documented = set()
    section = ""
    for line in (ROOT / "docs" / "commands.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            section = line.strip("# `")
        if option := re.match(r"^\| `(--[a-z-]+)`", line):
            documented.add((section, option[1]))
    assert documented == set(options(typer.main.get_command(command_line), "board"))


def blocks(page: Path) -> list[str]:
    """The fenced blocks of a page, without comments, which are translated."""
    fenced = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [f"{language}\n" + re.sub(r"\s+# .*$", "", text, flags=re.MULTILINE) for language, text in fenced]


def outline(page: Path) -> list[int]:
    """The levels of the headings, in order."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [len(marks) for marks in re.findall(r"^(#+) ", text, re.MULTILINE)]


def links(page: Path) -> list[str]:
    """Where the page leads inside the project."""
    found = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    return [link for link in found if not link.startswith("http")]


def test_both_readmes_have_the_same_commands_outputs_and_outline() -> None:
    english, chinese = READMES
    assert blocks(english) == blocks(chinese)
    assert len(blocks(english)) > 10
    assert outline(english) == outline(chinese)


def test_both_readmes_lead_to_the_same_pages() -> None:
    english, chinese = (
        {link for link in links(page) if link.endswith(".md")} - {p.name for p in READMES} for page in READMES
    )
    assert english == chinese


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_is_dead(page: Path) -> None:
    dead = [link for link in links(page) if not (page.parent / unquote(link)).exists()]
    assert dead == []


def test_every_page_is_in_the_index() -> None:
    docs = ROOT / "docs"
    for folder in (docs, docs / "decisions"):
        index = (folder / "README.md").read_text(encoding="utf-8")
        missing = [page.name for page in folder.glob("*.md") if page.name != "README.md" and page.name not in index]
        assert missing == [], f"add to {folder.name}/README.md"
