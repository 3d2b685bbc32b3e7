#!/usr/bin/env python3
"""psycopg2: 20 MB in by COPY, 20 MB out by one SELECT, and small statements around them."""

from __future__ import annotations

import io

import bodies
import psycopg2

with psycopg2.connect("") as connection:
    cursor = connection.cursor()
    cursor.execute("TRUNCATE bulk")
    cursor.copy_expert("COPY bulk FROM STDIN", io.StringIO(f"{bodies.LINE}\n" * bodies.ROWS))
    connection.commit()
    bodies.read_bulk(cursor)
    connection.commit()
