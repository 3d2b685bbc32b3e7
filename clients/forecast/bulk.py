#!/usr/bin/env python3
"""psycopg2: 20 MB in by COPY, 20 MB out by one SELECT, and small statements around them."""

from __future__ import annotations

import io

import psycopg2

ROWS = 20_000
LINE = "x" * 999

with psycopg2.connect("") as connection:
    cursor = connection.cursor()
    cursor.execute("TRUNCATE bulk")
    cursor.copy_expert("COPY bulk FROM STDIN", io.StringIO(f"{LINE}\n" * ROWS))
    connection.commit()
    for _ in range(20):
        cursor.execute("SELECT 1")
        cursor.fetchall()
    cursor.execute("SELECT line FROM bulk")
    assert len(cursor.fetchall()) == ROWS
    connection.commit()
