"""What the programs of PostgreSQL and of MariaDB do alike, by a cursor of either driver."""

from __future__ import annotations

from typing import Any

ROWS = 20_000
LINE = "x" * 999


def walk(cursor: Any) -> None:
    """A list, then one statement for each row of it: 401 trips."""
    cursor.execute("SELECT id FROM people ORDER BY id")
    total = 0
    for (person,) in cursor.fetchall():
        cursor.execute("SELECT amount FROM pay WHERE person = %s", (person,))
        total += sum(amount for (amount,) in cursor.fetchall())
    assert total > 0


def read_bulk(cursor: Any) -> None:
    """Small statements, then 20 MB out by one SELECT."""
    for _ in range(20):
        cursor.execute("SELECT 1")
        cursor.fetchall()
    cursor.execute("SELECT line FROM bulk")
    assert len(cursor.fetchall()) == ROWS
