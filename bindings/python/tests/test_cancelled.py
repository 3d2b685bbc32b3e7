"""Tasks that are cancelled while they wait: the connection stays whole, and nobody gets another's answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import onetrip
import pytest
from onetrip import aio

LONG = "SELECT pg_sleep(60)"

Waits = Callable[[aio.AsyncConnection], Awaitable[Any]]


async def statement(connection: aio.AsyncConnection) -> None:
    await connection.execute(LONG)


async def many(connection: aio.AsyncConnection) -> None:
    await connection.cursor().executemany("SELECT pg_sleep(%s)", [(60,), (60,)])


async def block_that_ends(connection: aio.AsyncConnection) -> None:
    async with connection.pipeline() as pipeline:
        await pipeline.execute(LONG)


async def block_that_waits(connection: aio.AsyncConnection) -> None:
    async with connection.pipeline("continue") as pipeline:
        await pipeline.execute("SELECT 1")
        await (await connection.execute(LONG)).fetchone()
        await pipeline.execute(LONG)


async def block_within_a_block(connection: aio.AsyncConnection) -> None:
    async with connection.pipeline(), connection.pipeline() as inner:
        await inner.execute(LONG)


async def block_of_a_transaction(connection: aio.AsyncConnection) -> None:
    async with connection.transaction():
        await connection.execute(LONG)


async def named_cursor(connection: aio.AsyncConnection) -> None:
    cursor = connection.cursor("named")
    await cursor.execute("SELECT 1 UNION ALL SELECT 2 FROM pg_sleep(60)")
    await cursor.fetchall()


async def copy_out(connection: aio.AsyncConnection) -> None:
    async with connection.cursor().copy("COPY (SELECT pg_sleep(60)) TO STDOUT") as copy:
        await copy.read()


WAITS: list[Waits] = [
    statement, many, block_that_ends, block_that_waits, block_within_a_block, block_of_a_transaction, named_cursor,
    copy_out,
]  # fmt: skip


@pytest.mark.parametrize("cancels", [1, 2, 5], ids="cancelled {} times".format)
@pytest.mark.parametrize("waits", WAITS, ids=lambda waits: waits.__name__)
def test_after_a_cancelled_wait_everything_can_be_begun(server: dict[str, Any], waits: Waits, cancels: int) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:
            task = asyncio.ensure_future(waits(connection))
            await asyncio.sleep(0.2)
            for _ in range(cancels):
                task.cancel()
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not connection.closed
            async with connection.pipeline() as pipeline:
                await pipeline.rollback()
                mine = await pipeline.execute("SELECT 'mine'")
            assert mine.fetchall() == [("mine",)]
            assert await (await connection.execute("SELECT 'too'")).fetchone() == ("too",)

    asyncio.run(asyncio.wait_for(main(), 50))


def test_a_statement_that_cannot_be_interrupted_costs_the_connection(
    server: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        connection = await aio.connect(**server)

        async def nowhere() -> None:
            raise OSError("no way to the server")

        monkeypatch.setattr(connection, "cancel", nowhere)
        monkeypatch.setattr(aio.connection, "_ABANDON_SECONDS", 0.2)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(connection.execute("SELECT pg_sleep(5)"), 0.1)
        assert connection.closed
        with pytest.raises(onetrip.InterfaceError):
            await connection.execute("SELECT 1")

    asyncio.run(main())
