import asyncio

import psycopg


def loop(connection):
    for (author,) in connection.execute("SELECT id FROM author ORDER BY id").fetchall():
        connection.execute("SELECT title FROM book WHERE author_id = %s", (author,)).fetchall()  # OT001


async def waiting():
    async with await psycopg.AsyncConnection.connect() as connection:
        for note in range(20):
            await connection.execute("INSERT INTO note (body) VALUES (%s)", (f"note {note}",))  # OT002
        await connection.commit()


with psycopg.connect() as connection:
    loop(connection)
    with connection.cursor("pieces") as pieces:
        pieces.itersize = 10
        for _ in pieces.execute("SELECT id FROM book ORDER BY id"):  # OT004
            pass
    with connection.pipeline():
        connection.execute("SELECT 1")
        connection.execute("SELECT 2")
    with connection.cursor().copy("COPY (SELECT 1) TO STDOUT") as copy:
        assert list(copy.rows()) == [("1",)]
asyncio.run(waiting())
