"""Large objects and the pool of the connection for event loops."""

from __future__ import annotations

import asyncio
from typing import Any

import onetrip
import pytest
from onetrip import aio, errors

DATA = bytes(range(256)) * 4000  # less than a megabyte


def test_large_objects_are_written_and_read_in_pieces_that_travel_together(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:
            large = await connection.create_large_object(DATA)
            small = await connection.create_large_object(b"small")
            before = connection.trips
            objects = await connection.large_objects([large, small])
            assert connection.trips - before == 1
            assert [await one.read() for one in objects] == [DATA, b"small"]
            assert connection.trips - before == 1, "all of them were fetched ahead"
            (part,) = await connection.large_objects([large], prefetch=1000)
            assert (part.memory, part.length) == (1000, None)
            assert await part.read(600) + await part.read(600) + await part.read() == DATA
            assert (part.length, await part.read()) == (len(DATA), b"")
            before = connection.trips
            (known,) = await connection.large_objects([large], prefetch=0)
            assert (known.length, known.memory) == (len(DATA), 0)
            assert await known.read() == DATA
            assert connection.trips - before == 2, "its length, and then its pieces together"
            (later,) = await connection.large_objects([small], prefetch=-1)
            await connection.write_large_object(small, b"ish", 5)
            assert await later.read() == b"smallish"
            with pytest.raises(errors.UndefinedObject):
                await connection.large_objects([1])
            await connection.rollback()

    asyncio.run(main())


def test_a_pool_gives_connections_out_in_turn_without_trips(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with aio.AsyncPool(**server, max_size=2) as pool:
            async with pool.connection() as first:
                await first.execute("CREATE TEMP TABLE kept (a int)")
                pid = (await (await first.execute("SELECT pg_backend_pid()")).fetchone())[0]
            before = first.trips
            async with pool.connection() as again:
                assert again is first and again.trips == before
                assert (await (await again.execute("SELECT pg_backend_pid()")).fetchone())[0] == pid
                async with pool.connection():
                    assert pool.size == (0, 2)
                    with pytest.raises(onetrip.OperationalError, match="became free"):
                        async with pool.connection(timeout=0.05):
                            pass
            with pytest.raises(errors.DivisionByZero):
                async with pool.connection() as failing:
                    await failing.execute("SELECT 1/0")
            assert pool.size == (2, 0)
            async with pool.connection() as ended:
                await ended.close()
            assert pool.size == (1, 0), "one that has ended is not given out again"
            taken = await pool.take()
            await taken.execute("SELECT 1")
            await pool.give_back(taken)
            assert taken.transaction_status == onetrip.TransactionStatus.IDLE
        with pytest.raises(onetrip.InterfaceError):
            await pool.take()

    asyncio.run(main())


def test_those_who_wait_for_a_pool_get_what_comes_back(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with aio.AsyncPool(**server, max_size=3) as pool:

            async def work(number: int) -> int:
                async with pool.connection() as connection:
                    return int((await (await connection.execute("SELECT %s", (number,))).fetchone())[0])

            assert await asyncio.gather(*map(work, range(20))) == list(range(20))
            assert pool.size[1] == 0 and pool.size[0] <= 3

    asyncio.run(main())


def test_a_block_whose_connection_was_lost_does_not_end_as_if_it_had_committed(server: dict[str, Any]) -> None:
    end = "SELECT pg_terminate_backend(%s)"

    async def main() -> None:
        with pytest.raises(onetrip.OperationalError):
            async with await aio.connect(**server) as connection:
                await connection.execute("CREATE TEMP TABLE kept (a int)")
                other = await aio.connect(**server)
                await other.execute(end, (connection.backend_pid,))
                await other.close()
                while not connection.closed:
                    await asyncio.sleep(0.01)

    asyncio.run(main())
    with pytest.raises(onetrip.OperationalError), onetrip.connect(**server) as connection:
        connection.execute("CREATE TEMP TABLE kept (a int)")
        with onetrip.connect(**server) as other:
            other.execute(end, (connection.backend_pid,))


def test_calls_of_the_blocking_twin_are_here(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:
            await connection.execute("CREATE TEMP TABLE item (id int)")
            cursor = await connection.executemany("INSERT INTO item VALUES (%s)", [(id,) for id in range(5)])
            assert cursor.rowcount == 5
            await cursor.executemany("INSERT INTO item VALUES (%s) RETURNING id", [(5,), (6,)], returning=True)
            assert [await one.fetchone() async for one in cursor.results()] == [(5,), (6,)]
            assert await cursor.callproc("abs", (-3,)) == (-3,) and await anext(cursor) == (3,)
            with pytest.raises(StopAsyncIteration):
                await anext(cursor)
            (large,) = await connection.large_objects([await connection.create_large_object(b"small")])
            into = bytearray(8)
            assert (await large.readinto(into), bytes(into)) == (5, b"small\0\0\0")
            async with connection.pipeline() as pipeline:
                counted = await pipeline.execute("SELECT count(*) FROM item")
            assert (counted.statusmessage, counted.fetchone()) == ("SELECT 1", (7,))
            await connection.rollback()

    asyncio.run(main())


def test_a_block_may_be_entered_again_within_itself(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection, connection.pipeline() as pipeline:
            first = await pipeline.execute("SELECT 1")
            async with pipeline:
                second = await connection.execute(query="SELECT %s", params=(2,))
            assert (first.fetchone(), await second.fetchone()) == ((1,), (2,))

    asyncio.run(main())
