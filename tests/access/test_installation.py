"""The key of the installation: made once, kept to, changed on purpose only."""

import base64
import multiprocessing
import stat
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from board.access import installation
from board.access.crypto import Vault, new_key
from board.access.errors import WrongKey
from board.catalogue.models import connections
from board.db.clock import now
from board.db.engine import Database
from board.settings import Settings, SettingsError, load

OLD, NEW, OTHER = new_key(), new_key(), new_key()


def settings(folder: Path, **values: Any) -> Settings:
    return load(_env_file=None, data_dir=folder, **values)


def store_secret(db: Database, name: str, token: str) -> None:
    with db.write() as tx:
        tx.execute(
            insert(connections).values(
                name=name, kind="dify", url="", options={}, secrets=token, version=1, updated_at=now(), updated_by="x"
            )
        )


def stored_secret(db: Database, name: str) -> str:
    with db.read() as connection:
        return str(connection.execute(select(connections.c.secrets).where(connections.c.name == name)).scalar_one())


def test_the_first_start_makes_a_key_and_every_later_start_finds_it(db: Database, tmp_path: Path) -> None:
    first = installation.open_vault(settings(tmp_path), db)
    path = tmp_path / "encryption_key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(base64.urlsafe_b64decode(path.read_text())) == 32
    token = first.encrypt("app-1234")
    assert installation.open_vault(settings(tmp_path), db).decrypt(token) == "app-1234"


def test_a_set_key_makes_no_file(db: Database, tmp_path: Path) -> None:
    vault = installation.open_vault(settings(tmp_path, encryption_key=NEW), db)
    assert vault.fingerprint == Vault(NEW).fingerprint
    assert not (tmp_path / "encryption_key").exists()


def test_another_key_is_refused_and_the_sentence_says_what_to_do(db: Database, tmp_path: Path) -> None:
    installation.open_vault(settings(tmp_path, encryption_key=OLD), db)
    with pytest.raises(WrongKey, match="another encryption key") as caught:
        installation.open_vault(settings(tmp_path, encryption_key=NEW), db)
    assert "BOARD_ENCRYPTION_KEY" in str(caught.value)
    assert Vault(OLD).fingerprint in str(caught.value)
    assert OLD not in str(caught.value)
    assert NEW not in str(caught.value)
    with db.read() as connection:  # the refused start changed nothing
        installation.check_key(connection, Vault(OLD))
        with pytest.raises(WrongKey):
            installation.check_key(connection, Vault(NEW))


def test_a_lost_key_is_not_replaced_by_a_new_one(db: Database, tmp_path: Path) -> None:
    installation.open_vault(settings(tmp_path), db)
    (tmp_path / "encryption_key").unlink()
    with pytest.raises(WrongKey, match="backup"):
        installation.open_vault(settings(tmp_path), db)
    assert not (tmp_path / "encryption_key").exists()


def test_a_file_that_holds_no_key_is_refused(db: Database, tmp_path: Path) -> None:
    (tmp_path / "encryption_key").write_text("something else\n")
    with pytest.raises(WrongKey, match="does not hold an encryption key"):
        installation.open_vault(settings(tmp_path), db)


def test_rotation_renews_every_stored_secret_and_then_the_old_key_is_not_needed(db: Database, tmp_path: Path) -> None:
    old = installation.open_vault(settings(tmp_path, encryption_key=OLD), db)
    store_secret(db, "dify", old.encrypt("app-1234"))
    store_secret(db, "open", "")

    with pytest.raises(WrongKey):  # not by leaving the old key out
        installation.open_vault(settings(tmp_path, encryption_key=NEW), db)
    installation.open_vault(settings(tmp_path, encryption_key=f"{NEW},{OLD}"), db)

    vault = installation.open_vault(settings(tmp_path, encryption_key=NEW), db)
    assert vault.decrypt(stored_secret(db, "dify")) == "app-1234"
    assert stored_secret(db, "open") == ""
    with pytest.raises(WrongKey):
        installation.open_vault(settings(tmp_path, encryption_key=OLD), db)


def test_a_straggler_of_the_old_key_is_caught_by_the_next_start_with_both(db: Database, tmp_path: Path) -> None:
    old = installation.open_vault(settings(tmp_path, encryption_key=OLD), db)
    installation.open_vault(settings(tmp_path, encryption_key=f"{NEW},{OLD}"), db)
    store_secret(db, "dify", old.encrypt("app-1234"))  # by a process that was not started anew yet
    vault = installation.open_vault(settings(tmp_path, encryption_key=f"{NEW},{OLD}"), db)
    assert Vault(NEW).decrypt(stored_secret(db, "dify")) == "app-1234"
    before = stored_secret(db, "dify")
    installation.open_vault(settings(tmp_path, encryption_key=f"{NEW},{OLD}"), db)
    assert stored_secret(db, "dify") == before
    assert vault.fingerprint == Vault(NEW).fingerprint


def test_rotation_without_a_pause(db: Database, tmp_path: Path) -> None:
    """As docs/access.md says: `old,new` everywhere, then `new,old` everywhere, then `new`."""
    installation.open_vault(settings(tmp_path, encryption_key=OLD), db)
    waiting = installation.open_vault(settings(tmp_path, encryption_key=f"{OLD},{NEW}"), db)
    store_secret(db, "dify", waiting.encrypt("app-1234"))
    first = installation.open_vault(settings(tmp_path, encryption_key=f"{NEW},{OLD}"), db)
    assert waiting.decrypt(stored_secret(db, "dify")) == "app-1234"  # renewed, and the other process still reads it
    assert first.decrypt(waiting.encrypt("entered meanwhile")) == "entered meanwhile"
    store_secret(db, "late", waiting.encrypt("entered meanwhile"))
    installation.open_vault(settings(tmp_path, encryption_key=f"{NEW},{OLD}"), db)  # the last process of the round
    vault = installation.open_vault(settings(tmp_path, encryption_key=NEW), db)
    assert vault.decrypt(stored_secret(db, "dify")) == "app-1234"
    assert vault.decrypt(stored_secret(db, "late")) == "entered meanwhile"


def test_two_keys_that_are_both_strange_are_refused(db: Database, tmp_path: Path) -> None:
    installation.open_vault(settings(tmp_path, encryption_key=OLD), db)
    with pytest.raises(WrongKey):
        installation.open_vault(settings(tmp_path, encryption_key=f"{NEW},{OTHER}"), db)


def test_a_secret_that_neither_key_reads_stops_the_rotation_whole(db: Database, tmp_path: Path) -> None:
    old = installation.open_vault(settings(tmp_path, encryption_key=OLD), db)
    readable = old.encrypt("app-1234")
    store_secret(db, "dify", readable)
    store_secret(db, "strange", Vault(OTHER).encrypt("?"))
    with pytest.raises(WrongKey):
        installation.open_vault(settings(tmp_path, encryption_key=f"{NEW},{OLD}"), db)
    assert stored_secret(db, "dify") == readable
    installation.open_vault(settings(tmp_path, encryption_key=OLD), db)


def test_a_secret_entered_during_the_rotation_stays(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = installation.open_vault(settings(tmp_path, encryption_key=OLD), db)
    store_secret(db, "dify", old.encrypt("former"))
    both = Vault(f"{NEW},{OLD}")
    entered = both.encrypt("entered meanwhile")
    from board.access import rotation

    with db.write() as tx:

        def renew_late(self: Vault, token: str) -> str:
            tx.execute(update(connections).values(secrets=entered))
            return self.encrypt(self.decrypt(token))

        monkeypatch.setattr(Vault, "renew", renew_late)
        assert rotation.renew_all(tx, both) == 0
    assert stored_secret(db, "dify") == entered


def _start(url: str, folder: Path, start: Barrier, answers: "multiprocessing.Queue[str]") -> None:
    db = Database(url)
    try:
        start.wait(60)
        answers.put(installation.open_vault(settings(folder), db).fingerprint)
    except Exception as error:
        answers.put(repr(error))
    finally:
        db.close()


def test_processes_that_start_at_once_agree_on_the_key(database_url: str, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start, answers = context.Barrier(3), context.Queue()
    processes = [context.Process(target=_start, args=(database_url, tmp_path, start, answers)) for _ in range(3)]
    for process in processes:
        process.start()
    got = [answers.get(timeout=90) for _ in processes]
    for process in processes:
        process.join(60)
    assert set(got) == {Vault((tmp_path / "encryption_key").read_text().strip()).fingerprint}


def test_a_start_between_the_making_of_key_and_fingerprint_is_let_in(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process makes the file and stores the fingerprint while we look: we must not call the key lost."""
    real_read, other_started = installation.secret_file.read, []

    def read_while_another_starts(path: Path) -> str | None:
        found = real_read(path)
        if not other_started:
            other_started.append(True)
            installation.open_vault(settings(tmp_path), db)
        return found

    monkeypatch.setattr(installation.secret_file, "read", read_while_another_starts)
    vault = installation.open_vault(settings(tmp_path), db)
    assert vault.fingerprint == Vault((tmp_path / "encryption_key").read_text().strip()).fingerprint


def test_the_webhook_secret_is_made_once_in_the_form_of_standard_webhooks(tmp_path: Path) -> None:
    made = installation.webhook_secret(settings(tmp_path))
    assert made.startswith("whsec_")
    assert len(base64.b64decode(made.removeprefix("whsec_"), validate=True)) == 32
    assert installation.webhook_secret(settings(tmp_path)) == made
    assert stat.S_IMODE((tmp_path / "webhook_secret").stat().st_mode) == 0o600


def test_a_set_webhook_secret_makes_no_file(tmp_path: Path) -> None:
    assert installation.webhook_secret(settings(tmp_path, webhook_secret="any text")) == "any text"
    assert list(tmp_path.iterdir()) == []


def test_a_data_folder_that_cannot_be_written_is_named(db: Database, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SettingsError, match="BOARD_ENCRYPTION_KEY"):
        installation.open_vault(settings(tmp_path / "file"), db)


def test_the_installation_id_is_made_once(db: Database) -> None:
    with db.write() as tx:
        first = installation.installation_id(tx)
    with db.write() as tx:
        assert installation.installation_id(tx) == first
    assert len(first) == 16
    int(first, 16)
