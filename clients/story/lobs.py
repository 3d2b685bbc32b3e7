#!/usr/bin/env python3
"""Large objects read one by one with psycopg2: `lobs.py committed|repeatable COUNT`, in one transaction of that level."""

from __future__ import annotations

import hashlib

import psycopg2
from psycopg2.extensions import ISOLATION_LEVEL_READ_COMMITTED, ISOLATION_LEVEL_REPEATABLE_READ
from story import Story, arguments

LEVELS = {"committed": ISOLATION_LEVEL_READ_COMMITTED, "repeatable": ISOLATION_LEVEL_REPEATABLE_READ}


def main() -> None:
    level, count = arguments(tuple(LEVELS))
    story = Story()
    connection = psycopg2.connect("")
    connection.set_session(isolation_level=LEVELS[level])
    story.begin()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id, object FROM lob ORDER BY id LIMIT {count}")
        for number, oid in cursor.fetchall():
            large = connection.lobject(oid, "rb")
            story.lines.append(f"{number} {hashlib.sha256(large.read()).hexdigest()}")
            large.close()
    connection.commit()
    story.end()
    connection.close()
    story.print()


main()
