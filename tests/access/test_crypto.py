import pytest

from board.access.crypto import Vault, new_key
from board.access.errors import WrongKey

OLD, NEW = new_key(), new_key()


@pytest.mark.parametrize("secret", ["app-1234", "", "密钥 ✓", "x" * 100_000])
def test_what_was_encrypted_comes_back(secret: str) -> None:
    vault = Vault(NEW)
    token = vault.encrypt(secret)
    assert vault.decrypt(token) == secret
    assert token.isascii()
    assert not secret or secret not in token


def test_twice_the_same_secret_looks_different() -> None:
    vault = Vault(NEW)
    assert vault.encrypt("a") != vault.encrypt("a")


def test_another_key_is_refused_in_one_sentence() -> None:
    token = Vault(OLD).encrypt("app-1234")
    with pytest.raises(WrongKey, match="cannot be read with this encryption key") as caught:
        Vault(NEW).decrypt(token)
    assert "app-1234" not in str(caught.value)
    assert NEW not in str(caught.value)


@pytest.mark.parametrize("token", ["", "not a token", "gAAAAA", "密"])
def test_what_was_never_encrypted_is_refused(token: str) -> None:
    with pytest.raises(WrongKey):
        Vault(NEW).decrypt(token)


def test_a_changed_token_is_refused() -> None:
    token = Vault(NEW).encrypt("app-1234")
    middle = len(token) // 2
    changed = token[:middle] + ("A" if token[middle] != "A" else "B") + token[middle + 1 :]
    with pytest.raises(WrongKey):
        Vault(NEW).decrypt(changed)


def test_both_keys_read_and_the_first_one_writes() -> None:
    both = Vault(f"{NEW}, {OLD}")
    assert both.decrypt(Vault(OLD).encrypt("a")) == "a"
    assert Vault(NEW).decrypt(both.encrypt("b")) == "b"


def test_renew_brings_a_token_under_the_first_key_and_leaves_one_alone_that_is() -> None:
    both = Vault(f"{NEW},{OLD}")
    renewed = both.renew(Vault(OLD).encrypt("a"))
    assert Vault(NEW).decrypt(renewed) == "a"
    assert both.renew(renewed) == renewed


def test_the_fingerprint_names_the_first_key_only() -> None:
    both = Vault(f"{NEW},{OLD}")
    assert both.fingerprint == Vault(NEW).fingerprint != Vault(OLD).fingerprint
    assert both.fingerprints == (Vault(NEW).fingerprint, Vault(OLD).fingerprint)


def test_nothing_shown_of_a_vault_holds_its_key() -> None:
    vault = Vault(NEW)
    for shown in (repr(vault), str(vault), f"{vault}"):
        assert NEW not in shown
        assert vault.fingerprint in shown


@pytest.mark.parametrize("text", ["", ",", "short", "A" * 43, "é" * 44])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Vault(text)
