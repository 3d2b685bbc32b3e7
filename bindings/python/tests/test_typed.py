"""Type checkers know a connection's rows, as in programs that were written for psycopg."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onetrip
import pytest

PROGRAM = Path(__file__).with_name("typed_program.py")


@pytest.mark.parametrize("name", ["onetrip", "psycopg"])
def test_a_typed_program_passes_a_strict_check(
    name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("mypy")
    pytest.importorskip(name)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.read_text().replace("onetrip", name))
    # Only the program is checked, not the package; the second check has the standard library from the first.
    cache = tmp_path_factory.getbasetemp() / "mypy"
    # Not every Python has SQLite.
    options = ["--strict", "--follow-imports=silent", "--no-sqlite-cache", f"--cache-dir={cache}", "--config-file="]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, program], capture_output=True, text=True, cwd=tmp_path, env=os.environ
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_classes_take_the_type_of_their_rows() -> None:
    from onetrip.rows import DictRow

    for kind in (onetrip.Connection, onetrip.Cursor, onetrip.ServerCursor, onetrip.AsyncConnection, onetrip.AsyncCursor):
        assert kind[DictRow].__origin__ is kind

        class Own(kind[DictRow]):  # type: ignore[misc, valid-type]
            pass

        assert issubclass(Own, kind)
