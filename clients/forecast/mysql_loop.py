#!/usr/bin/env python3
"""PyMySQL, serial: a list, then one statement for each row of it (401 trips)."""

from __future__ import annotations

import mysql_place
import pymysql

with pymysql.connect(**mysql_place.parameters(), autocommit=True) as connection:
    cursor = connection.cursor()
    cursor.execute("SELECT id FROM people ORDER BY id")
    total = 0
    for (person,) in cursor.fetchall():
        cursor.execute("SELECT amount FROM pay WHERE person = %s", (person,))
        total += sum(amount for (amount,) in cursor.fetchall())
assert total > 0
