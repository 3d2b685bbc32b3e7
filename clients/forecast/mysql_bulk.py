#!/usr/bin/env python3
"""PyMySQL: 20 MB in by executemany, 20 MB out by one SELECT, and small statements around them."""

from __future__ import annotations

import mysql_place
import pymysql

ROWS = 20_000
LINE = "x" * 999

with pymysql.connect(**mysql_place.parameters()) as connection:
    cursor = connection.cursor()
    cursor.execute("TRUNCATE bulk")
    cursor.executemany("INSERT INTO bulk VALUES (%s)", [(LINE,)] * ROWS)
    connection.commit()
    for _ in range(20):
        cursor.execute("SELECT 1")
        cursor.fetchall()
    cursor.execute("SELECT line FROM bulk")
    assert len(cursor.fetchall()) == ROWS
    connection.commit()
