#!/usr/bin/env python3
"""PyMySQL: 20 MB in by executemany, 20 MB out by one SELECT, and small statements around them."""

from __future__ import annotations

import bodies
import mysql_place
import pymysql

with pymysql.connect(**mysql_place.parameters()) as connection:
    cursor = connection.cursor()
    cursor.execute("TRUNCATE bulk")
    cursor.executemany("INSERT INTO bulk VALUES (%s)", [(bodies.LINE,)] * bodies.ROWS)
    connection.commit()
    bodies.read_bulk(cursor)
    connection.commit()
