"""Parts of documents that scripts write: what stands between two marks."""

from __future__ import annotations

import sys
from pathlib import Path

Marks = tuple[str, str]


def between(document: Path, marks: Marks) -> str:
    """What stands between the marks; exits where the document has not both of them."""
    return _parts(document, marks)[1]


def put_between(document: Path, marks: Marks, text: str) -> None:
    """Puts `text` there instead, with a blank line on either side."""
    before, _, after = _parts(document, marks)
    document.write_text(f"{before}{marks[0]}\n\n{text.strip()}\n\n{marks[1]}{after}")


def _parts(document: Path, marks: Marks) -> tuple[str, str, str]:
    before, first, rest = document.read_text().partition(marks[0])
    inside, last, after = rest.partition(marks[1])
    if not first or not last:
        sys.exit(f"{document} has no place for a table: {marks[0]} and {marks[1]}")
    return before, inside, after
