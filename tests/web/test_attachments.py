"""Files of a task on its review: what is shown, what is only saved, and that nothing of them runs here."""

import re

from tests.web.conftest import Site

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
