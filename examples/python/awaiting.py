"""The same connection for asyncio."""

from __future__ import annotations

import asyncio

from onetrip import aio


async def main() -> None:
    async with await aio.connect() as connection:
        await connection.execute("CREATE TEMP TABLE point (x int, y int)")
        async with connection.pipeline() as pipeline:
            for x in range(10):
                await pipeline.execute("INSERT INTO point VALUES (%s, %s)", (x, x * x))
        cursor = await connection.execute("SELECT sum(y) FROM point")
        print(await cursor.fetchone())


if __name__ == "__main__":
    asyncio.run(main())
