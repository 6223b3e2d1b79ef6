"""Small PDF documents, written by hand so that every byte of them is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def pdf(path: Path, pages: Sequence[str], size: tuple[float, float] = (200, 100)) -> Path:
    """One page for each text (ASCII); an empty text gives a page with a black square, as a scan has no text."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {len(pages)}/Kids[{kids}]>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, text in enumerate(pages):
        drawn = f"BT /F 12 Tf 10 50 Td ({text}) Tj ET" if text else "10 10 50 50 re f"
        box = f"/MediaBox[0 0 {size[0]} {size[1]}]"
        objects.append(f"<</Type/Page/Parent 2 0 R{box}/Resources<</Font<</F 3 0 R>>>>/Contents {5 + 2 * number} 0 R>>")
        objects.append(f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream")
    whole, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects):
        places.append(len(whole))
        whole += f"{number + 1} 0 obj{body}endobj\n".encode()
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    end += f"trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(whole)}\n%%EOF"
    path.write_bytes(whole + end.encode())
    return path
