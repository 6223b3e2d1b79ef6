"""On which file system a path lies, by Linux's list of mounts."""

from pathlib import Path

import pytest

from board.db import place
from board.db.place import BadPlace, check, filesystem, sqlite_path

MOUNTS = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 27 0:50 / /srv rw,relatime - nfs4 filer:/srv rw
41 40 254:1 / /srv/local rw - xfs /dev/vdb rw
42 27 0:51 / /mnt/two\040words rw - cifs //filer/share rw
43 27 0:52 / /stacked rw - ext4 /dev/vdc rw
44 43 0:53 / /stacked rw - fuse.sshfs host: rw
a broken line
"""


@pytest.fixture(autouse=True)
def _mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTS)
    monkeypatch.setattr(place, "MOUNTS", tmp_path / "mountinfo")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/board/board.db", "ext4"),
        ("/srv/board.db", "nfs4"),
        ("/srv/local/board.db", "xfs"),
        ("/srvother/board.db", "ext4"),
        ("/mnt/two words/board.db", "cifs"),
        ("/stacked/board.db", "fuse.sshfs"),
    ],
)
def test_the_deepest_and_last_mount_counts(path: str, kind: str) -> None:
    assert filesystem(Path(path)) == kind


@pytest.mark.parametrize("path", ["/srv/board.db", "/mnt/two words/board.db", "/stacked/board.db"])
def test_a_network_file_system_is_refused(path: str) -> None:
    with pytest.raises(BadPlace, match="local disk, or use PostgreSQL"):
        check(f"sqlite:///{path}")


@pytest.mark.parametrize("url", ["sqlite:////srv/local/board.db", "sqlite:///data/board.db", "postgresql://host/srv"])
def test_a_local_disk_and_postgresql_are_fine(url: str) -> None:
    check(url)


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to("/srv")
    assert sqlite_path(f"sqlite:///{tmp_path}/data/board.db") == Path("/srv/board.db")
    with pytest.raises(BadPlace):
        check(f"sqlite:///{tmp_path}/data/board.db")


def test_where_there_is_no_list_nothing_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(place, "MOUNTS", tmp_path / "nothing")
    check("sqlite:////srv/board.db")
    assert filesystem(Path("/srv/board.db")) is None
