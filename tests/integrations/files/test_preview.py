"""Pages of a document for somebody who looks at it: what the children draw, and which refusals are told apart."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from board.ports import Drawing, NotShown
from integrations.files.catalogue import all_handlers
from integrations.files.documents.preview import SIZE, DocumentPreview
from integrations.files.pool import Pool
from tests.integrations.files.pdfs import pdf

CASES = Path(__file__).parents[2] / "data/cases/docs"


class Here(Pool):
    """Does in this process what a child would do."""

    async def run(self, most: int, seconds: float, work: Any, *args: Any, **kwargs: Any) -> Any:
        return work(*args, **kwargs)


def drawn(source: Path, folder: Path, pages: int = 2) -> Drawing:
    handler = DocumentPreview("document.preview", "integrations.files.documents.make", (), Here())
    return asyncio.run(handler.draw(source, folder, pages=pages, slots=1, max_pixels=100_000_000, seconds=20))


def test_the_first_pages_become_pictures_and_all_are_counted(tmp_path: Path) -> None:
    drawing = drawn(pdf(tmp_path / "a.pdf", ["one", "two", "three"]), tmp_path)
    assert (drawing.of, len(drawing.pages)) == (3, 2)
    for page in drawing.pages:
        with Image.open(page.path) as picture:
            assert picture.format == "JPEG"
            assert picture.size == (page.width, page.height) == (SIZE, SIZE // 2)


def test_locked_and_damaged_documents_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NotShown) as locked:
        drawn(CASES / "d_password.pdf", tmp_path)
    damaged = tmp_path / "damaged.pdf"
    damaged.write_bytes(b"%PDF-1.4 and nothing more")
    with pytest.raises(NotShown) as broken:
        drawn(damaged, tmp_path)
    assert (locked.value.why, broken.value.why) == ("password", "broken")


def test_the_installed_handlers_draw_pdf() -> None:
    assert [it.name for it in all_handlers() if isinstance(it, DocumentPreview)] == ["document.preview"]
