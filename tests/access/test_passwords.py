import pytest
from argon2 import PasswordHasher

from board.access import passwords
from board.access.errors import AccessError


@pytest.mark.parametrize("password", ["0123456789", "一二三四五六七八九十", " ten wide ", "x" * 1000, "\ud800" * 10])
def test_a_password_opens_only_itself(password: str) -> None:
    stored = passwords.hash_password(password)
    assert stored.startswith("$argon2id$")
    assert passwords.matches(stored, password)
    assert not passwords.matches(stored, password + "x")
    assert not passwords.matches(stored, "")


@pytest.mark.parametrize(("password", "sentence"), [("", "short"), ("123456789", "at least 10"), ("x" * 1001, "1000")])
def test_too_short_and_too_long_are_refused(password: str, sentence: str) -> None:
    with pytest.raises(AccessError, match=sentence) as caught:
        passwords.hash_password(password)
    assert (caught.value.code, caught.value.field) == ("bad_password", "password")
    assert not password or password not in str(caught.value)


def test_letters_that_systems_encode_differently_are_the_same_password() -> None:
    assert passwords.matches(
        passwords.hash_password("caf\u00e9 caf\u00e9 caf\u00e9"), "cafe\u0301 cafe\u0301 cafe\u0301"
    )


def test_without_a_stored_hash_nothing_matches_not_even_the_decoy() -> None:
    assert not passwords.matches(None, "nobody has this password")


def test_a_broken_hash_matches_nothing() -> None:
    assert not passwords.matches("not a hash", "correct horse")


def test_weak_parameters_are_seen() -> None:
    weak = PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1).hash("correct horse")
    assert passwords.is_outdated(weak)
    assert not passwords.is_outdated(passwords.hash_password("correct horse"))
