"""The table of rights, and that docs/access.md says the same."""

import re
from pathlib import Path

import pytest

from board.access.rights import BY_ROLE, BY_SCOPE, CONSOLE, Act, Forbidden, Role, Scope, key_actor, person_actor

PAGE = (Path(__file__).parents[2] / "docs" / "access.md").read_text(encoding="utf-8")
COLUMNS = (Act.READ, Act.SUBMIT, Act.OPERATE, Act.REVIEW, Act.ADMIN)  # of the page's table of roles


def test_the_page_names_every_role_with_its_rights() -> None:
    documented = {
        name: tuple(cell.strip() == "yes" for cell in cells.split("|"))
        for name, cells in re.findall(r"^\| (\w+) \| ((?:yes|no)(?: \| (?:yes|no))+) \|$", PAGE, re.MULTILINE)
    }
    assert documented == {role.value: tuple(act in BY_ROLE[role] for act in COLUMNS) for role in Role}


def test_the_page_names_every_scope() -> None:
    section = PAGE.split("## Scopes")[1].split("```")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [scope.value for scope in Scope]


@pytest.mark.parametrize(
    ("scope", "own", "others"),
    [
        (Scope.SUBMIT, {Act.READ, Act.OPERATE, Act.SUBMIT}, {Act.SUBMIT}),
        (Scope.READ, {Act.READ}, {Act.READ}),
        (Scope.WORK, {Act.WORK}, {Act.WORK}),
        (Scope.REVIEW, {Act.READ, Act.REVIEW}, {Act.READ, Act.REVIEW}),
    ],
)
def test_what_a_scope_may_with_own_and_with_others_tasks(scope: Scope, own: set[Act], others: set[Act]) -> None:
    actor = key_actor("n8n", [scope])
    asked = {Act.READ, Act.OPERATE, Act.SUBMIT, Act.REVIEW, Act.WORK, Act.ADMIN}
    assert {act for act in asked if actor.may(act, own=True)} == own
    assert {act for act in asked if actor.may(act)} == others


def test_admin_owner_and_console_may_everything() -> None:
    for actor in (key_actor("a", ["admin"]), person_actor("a@b.org", "owner"), CONSOLE):
        assert all(actor.may(act) for act in Act)


def test_scopes_add_up() -> None:
    assert key_actor("n8n", ["read", "work"]).acts == BY_SCOPE[Scope.READ] | BY_SCOPE[Scope.WORK]


def test_a_refusal_says_what_would_be_needed() -> None:
    with pytest.raises(Forbidden, match=r"key .* needs the scope review or admin"):
        key_actor("n8n", ["read"]).require(Act.REVIEW)
    with pytest.raises(Forbidden, match=r"account .* needs the role owner or operator"):
        person_actor("a@b.org", "viewer").require(Act.OPERATE)
    key_actor("n8n", ["submit"]).require(Act.OPERATE, own=True)


def test_how_an_actor_stands_in_histories() -> None:
    assert key_actor("n8n", ["read"]).identity == "key:n8n"
    assert person_actor("a@b.org", "viewer").identity == "user:a@b.org"
    by = person_actor("a@b.org", "viewer").by("web")
    assert (by.kind, by.name, by.channel) == ("person", "a@b.org", "web")
