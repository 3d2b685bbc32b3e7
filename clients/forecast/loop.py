#!/usr/bin/env python3
"""psycopg2, serial: a list, then one statement for each row of it (401 trips)."""

from __future__ import annotations

import bodies
import psycopg2

with psycopg2.connect("") as connection:
    connection.autocommit = True
    bodies.walk(connection.cursor())
