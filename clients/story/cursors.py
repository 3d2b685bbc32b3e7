#!/usr/bin/env python3
"""A result read in pieces: `cursors.py psycopg3|psycopg2|django narrow|wide ROWS`, so many rows each time."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Iterable

from story import Story, arguments


def psycopg(version: str, query: str, piece: int, story: Story) -> None:
    connect = importlib.import_module(version).connect
    with contextlib.closing(connect("")) as connection:
        story.begin()
        with connection.cursor("walk") as cursor:
            cursor.itersize = piece
            cursor.execute(query)
            take(cursor, story)
        connection.commit()
        story.end()


def django(query: str, piece: int, story: Story) -> None:
    from django.conf import settings

    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["PGDATABASE"],
        "USER": os.environ["PGUSER"],
        "PASSWORD": os.environ.get("PGPASSWORD", ""),
        "HOST": os.environ["PGHOST"],
        "PORT": os.environ["PGPORT"],
    }
    settings.configure(DATABASES={"default": database})
    import django as framework

    framework.setup()
    from django.db import connection, models, transaction

    class Row(models.Model):
        id = models.IntegerField(primary_key=True)
        text = models.TextField()

        class Meta:
            app_label = "walk"
            db_table = query.split()[4]

    connection.ensure_connection()
    story.begin()
    with transaction.atomic():
        take(Row.objects.order_by("id").values_list("id", "text").iterator(chunk_size=piece), story)
    story.end()
    connection.close()


def take(rows: Iterable[tuple[int, str]], story: Story) -> None:
    story.lines += [f"{number} {text}" for number, text in rows]


def main() -> None:
    drivers = {
        "psycopg3": functools.partial(psycopg, "psycopg"),
        "psycopg2": functools.partial(psycopg, "psycopg2"),
        "django": django,
    }
    driver = drivers.get(sys.argv.pop(1)) if len(sys.argv) > 1 else None
    if driver is None:
        print(f"usage: {sys.argv[0]} {'|'.join(drivers)} narrow|wide ROWS", file=sys.stderr)
        sys.exit(2)
    table, piece = arguments(("narrow", "wide"))
    story = Story()
    driver(f"SELECT id, text FROM {table} ORDER BY id", piece, story)
    story.print()


main()
