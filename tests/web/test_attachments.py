"""Files of a task on its review: what is shown, what is only saved, and that nothing of them runs here."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from board.files import previews
from board.ports import Drawing, DrawnPage, NotShown
from integrations.files.documents.preview import SIZE
from tests.integrations.files.pdfs import pdf
from tests.rig.working import OpenWorking, Probe
from tests.web.conftest import Site, lost

# One white pixel.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8ffff3f0005fe02fe"
    "0def46b80000000049454e44ae426082"
)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="document.title=1"/>'


def kept(site: Site, name: str, content: bytes) -> str:
    files = site.working.board.files
    with files.spool() as spool:
        spool.write(content)
        spool.finish()
        return str(files.keep([(name, spool)], "user:owner@example.org")[0]["file_id"])


def test_pictures_and_texts_are_shown_everything_else_is_saved(site: Site) -> None:
    picture, text, svg = (
        kept(site, "<b>x.png", PNG),
        kept(site, "note.txt", b"<script>1</script> " + b"x" * 30_000),
        kept(site, "d.svg", SVG),
    )
    review = site.review(picture={"file": picture}, files=[{"file_id": text}], deep={"a": [{"file": svg}]})
    page = site.visitor("reviewer").get(f"/reviews/{review}").text
    assert f'<img src="/attachments/{picture}"' in page
    assert "&lt;b&gt;x.png" in page
    assert "&lt;script&gt;1&lt;/script&gt; xxx" in page
    assert "Only its beginning is shown here." in page
    assert f'href="/attachments/{svg}"' in page
    assert f'<img src="/attachments/{svg}"' not in page
    shown = re.findall(r'<figcaption><a href="/attachments/(file_\w+)"', page)
    assert shown == [picture, text, svg], "each once: what the output names is not repeated beside the input"


def test_a_file_is_sent_so_that_nothing_of_it_can_run(site: Site) -> None:
    reviewer = site.visitor("reviewer")
    for name, content, shown in (
        ("a.png", PNG, "inline"),
        ("d.svg", SVG, "attachment"),
        ("p.html", b"<!doctype html><p>", "attachment"),
    ):
        answer = reviewer.get(f"/attachments/{kept(site, name, content)}")
        assert answer.status_code == 200
        assert answer.content == content
        assert answer.headers["content-disposition"].startswith(shown)
        assert "sandbox" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "html" not in answer.headers["content-type"]
        assert "svg" not in answer.headers["content-type"]


def test_only_for_whoever_is_signed_in_and_may_read(site: Site) -> None:
    file_id = kept(site, "a.png", PNG)
    assert site.stranger().get(f"/attachments/{file_id}").status_code == 303
    assert site.visitor("viewer").get(f"/attachments/{file_id}").status_code == 200
    assert site.visitor("viewer").get(f"/attachments/file_{'0' * 32}").status_code == 404


# -- documents ----------------------------------------------------------------------------------------------------


class Drawer(Probe):
    """Draws every page as one white pixel; locked and broken documents by what is written in them."""

    previews = frozenset({"application/pdf"})

    def __init__(self) -> None:
        super().__init__(lost, name="document.preview")
        self.drawn: list[bytes] = []

    async def draw(
        self, path: Path, folder: Path, *, pages: int, slots: int, max_pixels: int, seconds: float
    ) -> Drawing:
        content = path.read_bytes()  # noqa: ASYNC240
        self.drawn.append(content)
        for why in ("password", "broken"):
            if why.encode() in content:
                raise NotShown(why, why)
        of = content.count(b"page")
        made = [folder / str(number) for number in range(min(pages, of))]
        for it in made:
            it.write_bytes(PNG)
        return Drawing([DrawnPage(it, 1, 1) for it in made], of)


@pytest.fixture
def drawer() -> Drawer:
    return Drawer()


@pytest.fixture
def drawing(working_sqlite: OpenWorking, drawer: Drawer) -> Site:
    working = working_sqlite(drawer, start=False)
    return Site(working)


def test_a_document_stands_in_a_frame_of_pictures_where_nothing_runs(drawing: Site, drawer: Drawer) -> None:
    file_id = kept(drawing, "<i>a.pdf", b"%PDF-1.4 page page")
    reader = drawing.visitor("viewer")
    answer = reader.get(f"/attachments/{file_id}/preview")
    assert "2 pages" in answer.text
    assert "&lt;i&gt;a.pdf" in answer.text
    assert "<script" not in answer.text
    policy = answer.headers["content-security-policy"]
    assert "sandbox allow-same-origin" in policy
    assert "script-src" not in policy
    assert "default-src 'none'" in policy
    pictures = re.findall(r'<img src="(/attachments/file_\w+)"', answer.text)
    assert [reader.get(it).content for it in pictures] == [PNG, PNG]
    assert reader.get(f"/attachments/{file_id}").headers["content-disposition"].startswith("attachment")


def test_the_same_content_is_drawn_once_and_only_its_first_pages(drawing: Site, drawer: Drawer) -> None:
    content = b"%PDF-1.4 " + b"page " * 12
    one, same = kept(drawing, "a.pdf", content), kept(drawing, "b.pdf", content)
    reader = drawing.visitor("viewer")
    for file_id in (one, same, one):
        page = reader.get(f"/attachments/{file_id}/preview").text
        assert "12 pages; the first 10 are shown." in page
        assert page.count("<img") == previews.PAGES
    assert len(drawer.drawn) == 1


def test_what_cannot_be_drawn_is_said_and_not_tried_twice(drawing: Site, drawer: Drawer) -> None:
    reader = drawing.visitor("viewer")
    locked, broken = kept(drawing, "l.pdf", b"%PDF- password"), kept(drawing, "b.pdf", b"%PDF- broken")
    for file_id, said in ((locked, "locked with a password"), (broken, "it is damaged")) * 2:
        page = reader.get(f"/attachments/{file_id}/preview")
        assert page.status_code == 200
        assert said in page.text
        assert "<img" not in page.text
    assert len(drawer.drawn) == 2


def test_a_preview_is_for_readers_and_of_documents_only(drawing: Site) -> None:
    document, svg = kept(drawing, "a.pdf", b"%PDF- page"), kept(drawing, "d.svg", SVG)
    assert drawing.stranger().get(f"/attachments/{document}/preview").status_code == 303
    assert drawing.visitor("viewer").get(f"/attachments/{svg}/preview").status_code == 404
    assert drawing.visitor("viewer").get(f"/attachments/file_{'0' * 32}/preview").status_code == 404


def test_a_real_document_is_drawn_by_a_child_and_shown_in_the_review(site: Site, inside: Page, tmp_path: Path) -> None:
    """In Chromium; the rig notices a policy that is broken and a script that fails."""
    file_id = kept(site, "offer.pdf", pdf(tmp_path / "a.pdf", ["first", "second"]).read_bytes())
    inside.goto(f"{site.working.board.settings.public_url}/reviews/{site.review(offer={'file': file_id})}")
    frame = inside.frame_locator(f'iframe[src="/attachments/{file_id}/preview"]')
    expect(frame.get_by_text("2 pages")).to_be_visible(timeout=30_000)
    pictures = frame.locator("img")
    expect(pictures).to_have_count(2)
    width = "it => it.decode().then(() => it.naturalWidth)"
    assert pictures.first.evaluate(width) == SIZE
