"""Packs this folder as a Dify plugin: `make dify-plugin`, or `python pack.py FILE`. A .difypkg is a zip."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

FOLDER = Path(__file__).parent
# What belongs to the plugin; nothing else that may lie here is packed.
PARTS = (
    *("manifest.yaml", "main.py", "board_client.py", "requirements.txt", "README.md", "PRIVACY.md"),
    *("_assets/*.svg", "provider/*.yaml", "provider/*.py", "tools/*.yaml", "tools/*.py"),
)
ALWAYS = (1980, 1, 1, 0, 0, 0)  # the same content gives the same bytes


def files() -> list[Path]:
    """Every file of the plugin, in a fixed order."""
    return sorted(path for part in PARTS for path in FOLDER.glob(part))


def pack(target: Path) -> None:
    """Write the package."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as package:
        for path in files():
            entry = zipfile.ZipInfo(path.relative_to(FOLDER).as_posix(), ALWAYS)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            package.writestr(entry, path.read_bytes())


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
    print(f"{sys.argv[1]}: {len(files())} files")
