"""A file is loaded and written again by COPY, without being held in memory; the same with asyncio."""

from __future__ import annotations

import asyncio
import csv
import shutil
import tempfile

import onetrip
from onetrip import aio


def load() -> None:
    with onetrip.connect() as connection, tempfile.TemporaryFile("w+") as file:
        csv.writer(file).writerows((id, f"item, {id}") for id in range(100_000))
        file.seek(0)
        connection.execute("CREATE TEMP TABLE item (id int, name text)")
        cursor = connection.cursor()
        with cursor.copy("COPY item FROM STDIN (FORMAT csv)") as copy:
            shutil.copyfileobj(file, copy)
        print(cursor.rowcount)
        with cursor.copy("COPY (SELECT * FROM item WHERE id % 40000 = 0 ORDER BY id) TO STDOUT") as copy:
            copy.set_types(["int4", "text"])
            print(list(copy.rows()))


async def load_again() -> None:
    async with await aio.connect() as connection:
        await connection.execute("CREATE TEMP TABLE item (id int, name text)")
        cursor = connection.cursor()
        async with cursor.copy("COPY item FROM STDIN") as copy:
            for id in range(1000):
                await copy.write_row((id, None))
        try:
            async with cursor.copy("COPY item FROM STDIN") as copy:
                await copy.write_row(("no number", None))
        except onetrip.DataError as error:
            print(error.diag.context)
        await connection.rollback()


if __name__ == "__main__":
    load()
    asyncio.run(load_again())
