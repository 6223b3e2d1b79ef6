"""A wrong setting stops the start with one plain sentence of our own, never with the validation library's."""

import re

import pytest

from board import settings
from board.settings import EXAMPLES, Settings, SettingsError


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("concurrency", "many", "must be a whole number"),
        ("concurrency", "", "must be a whole number"),
        ("concurrency", "1.5", "must be a whole number"),
        ("concurrency", "0", "must be at least 1"),
        ("concurrency", "1001", "must be at most 1000"),
        ("concurrency", "9" * 5000, "must be a whole number"),
        ("reserved_p0_slots", "-1", "must be at least 0"),
        ("lang", "de", "must be en or zh_CN"),
        ("log_format", "xml", "must be text or json"),
        ("lease", "soon", "“soon” is not a duration; write a number and one of ms, s, m, h, d"),
        ("lease", "2h", "must be between 1s and 1h"),
        ("max_json", "big", "“big” is not a size; write a number and one of B, KB, MB, GB"),
        ("lane_weights", "1,2,x,4", "give four whole numbers from 1 to 1000, for P0, P1, P2 and P3"),
        ("allow_private_targets", "10.0.0.0/99", "“10.0.0.0/99” is not a network"),
        ("allow_private_targets", "a b", "“a b” is not a host, host:port or network"),
        (
            "callback_rewrite",
            "http://n8n:5678",
            "“http://n8n:5678” has no =; write the address that callers name, =, and the one to call",
        ),
        ("timezone", "Mars", "“Mars” is not a time zone name"),
        ("encryption_key", "c2hvcnQ=", "holds 5 bytes; 32 are needed"),
        ("bootstrap_api_key", "short", "is shorter than 24 characters"),
    ],
)
def test_what_is_wrong_is_said_in_plain_words(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(f"BOARD_{name.upper()}", value)
    with pytest.raises(SettingsError) as error:
        settings.load()
    assert str(error.value) == f"BOARD_{name.upper()}: {words}. Example: {EXAMPLES[name]}"


@pytest.mark.parametrize("name", [name for name in Settings.model_fields if name not in ("data_dir", "webhook_secret")])
def test_no_sentence_is_the_librarys(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Whatever kind of value a setting has."""
    monkeypatch.setenv(f"BOARD_{name.upper()}", "\t%no/such value%")
    with pytest.raises(SettingsError) as error:
        settings.load()
    assert not re.search(r"[Ii]nput|[Vv]alid |parse|string|cannot be used", str(error.value))


def test_all_wrong_settings_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOARD_LEASE", "soon")
    monkeypatch.setenv("BOARD_LANG", "de")
    with pytest.raises(SettingsError) as error:
        settings.load()
    assert [line.split(":")[0] for line in str(error.value).splitlines()] == ["BOARD_LEASE", "BOARD_LANG"]
