"""Every row of docs/guarantees.md names its proof, and every proof is a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
PROOFS = dict(re.findall(r"^(\d+)\. (`[a-z0-9_]+/.*)$", PAGE, re.MULTILINE))


def test_every_row_about_a_death_names_its_proof() -> None:
    _, _, table = PAGE.partition("## When something dies")
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    assert all(re.search(r"\[\d+\] \|$", row) for row in rows), "a row without a proof"
    assert set(re.findall(r"\[(\d+)\]", PAGE)) == set(PROOFS)


def test_every_proof_is_a_test() -> None:
    missing = []
    for text in PROOFS.values():
        for part in text.split("; "):
            file, _, tests = part.partition(": ")
            source = (ROOT / "tests" / file.strip("`")).read_text(encoding="utf-8")
            missing += [name for name in re.findall(r"`(test_\w+)`", tests) if f"def {name}(" not in source]
    assert missing == []
