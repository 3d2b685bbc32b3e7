import asyncio
import os

import asyncpg


async def titles(connection, author):
    return await connection.fetch("SELECT title FROM book WHERE author_id = $1", author)  # OT001


async def work(pool):
    async with pool.acquire() as connection:
        for row in await connection.fetch("SELECT id FROM author ORDER BY id"):
            await titles(connection, row["id"])


async def main():
    async with asyncpg.create_pool(min_size=1, max_size=1) as pool:
        await asyncio.gather(work(pool), work(pool))
        async with pool.acquire() as connection, connection.transaction():
            for note in range(20):
                await connection.execute("INSERT INTO note (body) VALUES ($1)", f"note {note}")  # OT002
    for _ in range(6):
        connection = await asyncpg.connect()  # OT008
        await connection.fetchval("SELECT 1")
        await connection.close()


assert os.environ["PGHOST"]
asyncio.run(main())
