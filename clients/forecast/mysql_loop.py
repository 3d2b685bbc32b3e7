#!/usr/bin/env python3
"""PyMySQL, serial: a list, then one statement for each row of it (401 trips)."""

from __future__ import annotations

import bodies
import mysql_place
import pymysql

with pymysql.connect(**mysql_place.parameters(), autocommit=True) as connection:
    bodies.walk(connection.cursor())
