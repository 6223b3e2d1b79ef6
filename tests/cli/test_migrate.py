import pytest

from tests.cli.conftest import Run


def test_migrating_makes_the_database_usable_and_twice_is_as_good(
    run: Run, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOARD_DATABASE_URL", empty_database_url)
    assert run("users", "list").code == 1
    first, again = run("migrate"), run("migrate", "--json")
    assert (first.code, first.err, again.code, again.err) == (0, "", 0, "")
    assert f"schema {again.json['schema']}" in first.out
    assert run("users", "list").code == 0


def test_the_default_database_is_made_in_the_data_folder(run: Run) -> None:
    assert run("migrate").code == 0
    assert run("keys", "list", "--json").json == {"data": []}
