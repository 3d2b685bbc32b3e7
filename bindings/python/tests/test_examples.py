"""The examples of docs/python.md print what it says that they print."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[3]
PRINTED = {
    "transfer": 'refused: new row for relation "account" violates check constraint "account_balance_check"\n'
    "[(1, 30), (2, 70)]\n",
    "dependent": "[(3, 31), (4, 41), (5, 51)]\n",
    "each_apart": "one: UniqueViolation\nseventeen: StringDataRightTruncation\n(3,)\n",
    "awaiting": "(285,)\n",
    "streaming": "2 4\n",
    "loading": "row 1: Key (id)=(17) already exists.\n4999 249.95\n",
    "parts": "Zeile 0 ist länger a 5000000 1\nZeile 88563 ist länger als nötig.\n",
    "copying": "100000\n[(0, 'item, 0'), (40000, 'item, 40000'), (80000, 'item, 80000')]\n"
    'COPY item, line 1, column id: "no number"\n',
    "mapped": "['bolt', 'nail', 'screw']\n",
}


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_should(name: str, server: dict[str, Any]) -> None:
    if name == "mapped":
        pytest.importorskip("sqlalchemy")
    where = {
        "PGHOST": server["host"],
        "PGPORT": str(server["port"]),
        "PGUSER": server["user"],
        "PGPASSWORD": server["password"],
        "PGDATABASE": server["dbname"],
    }
    example = REPOSITORY / f"examples/python/{name}.py"
    run = subprocess.run([sys.executable, example], env=os.environ | where, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (0, PRINTED[name]), run.stderr
    assert f"examples/python/{name}.py" in (REPOSITORY / "docs/python.md").read_text()
