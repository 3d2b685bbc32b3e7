"""The connection's own calls within the block of a pipeline are a part of it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import onetrip
import pytest
from onetrip import PipelineAborted, aio, errors

SECONDS_MAX = 60


def run(main: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine; one that waits for itself fails."""
    asyncio.run(asyncio.wait_for(main, SECONDS_MAX))


def test_statements_join_the_block_and_share_its_trip(connection: onetrip.Connection) -> None:
    connection.execute("CREATE TEMP TABLE t (id int)")
    before = connection.trips
    with connection.pipeline() as pipeline:
        by_block = pipeline.execute("SELECT 1")
        by_connection = connection.execute("SELECT generate_series(1, 3) AS number")
        cursor = connection.cursor()
        cursor.execute("INSERT INTO t VALUES (%s)", (7,))
        many = connection.cursor()
        many.executemany("INSERT INTO t VALUES (%s)", [(8,), (9,)])
        returning = connection.cursor()
        returning.executemany("INSERT INTO t VALUES (%s) RETURNING id", [(10,), (11,)], returning=True)
    assert connection.trips - before == 1
    assert (by_block.fetchone(), by_connection.fetchall()) == ((1,), [(1,), (2,), (3,)])
    assert [column.name for column in by_connection.description or ()] == ["number"]
    assert (cursor.rowcount, cursor.statusmessage, many.rowcount) == (1, "INSERT 0 1", 2)
    assert (returning.fetchall(), returning.nextset(), returning.fetchall()) == ([(10,)], True, [(11,)])
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (5,)


def test_who_asks_for_rows_waits_for_them_and_the_block_goes_on(connection: onetrip.Connection) -> None:
    with connection.pipeline():
        assert connection.execute("SELECT %s", (5,)).fetchone() == (5,)
        second = connection.execute("SELECT 6")
        assert [row for row in second] == [(6,)]
        third = connection.execute("SELECT 7")
    assert third.fetchall() == [(7,)]


def test_the_block_raises_what_nobody_has_heard(connection: onetrip.Connection) -> None:
    with pytest.raises(errors.DivisionByZero), connection.pipeline():
        connection.execute("SELECT 1/0")
        after = connection.execute("SELECT 1")
    with pytest.raises(PipelineAborted):
        after.fetchone()
    connection.rollback()
    with connection.pipeline():
        with pytest.raises(errors.DivisionByZero):
            connection.execute("SELECT 1/0").fetchone()
    connection.rollback()


def test_what_became_of_operations_is_known_after_other_blocks(connection: onetrip.Connection) -> None:
    with pytest.raises(errors.DivisionByZero), connection.pipeline() as pipeline:
        undone = pipeline.execute("SELECT 1")
        with connection.pipeline("continue") as inner:
            failed = inner.execute("SELECT 1/0")
        pipeline.execute("SELECT 1/0")
        after = connection.execute("SELECT 1")
    connection.rollback()
    with connection.pipeline():
        connection.execute("SELECT 2")
    assert undone.fetchone() == (1,)
    with pytest.raises(errors.DivisionByZero):
        failed.result()
    with pytest.raises(PipelineAborted):
        after.fetchone()


def test_a_block_forgets_the_operations_before_a_sync(connection: onetrip.Connection) -> None:
    with connection.pipeline() as pipeline:
        for number in range(3):
            first = connection.execute("SELECT %s", (number,))
            pipeline.sync()
            assert pipeline.operations == []
        second = connection.execute("SELECT 7")
    assert (first.fetchone(), second.fetchone()) == ((2,), (7,))


def test_commit_and_rollback_join_it_too(connection: onetrip.Connection) -> None:
    with connection.pipeline():
        connection.execute("CREATE TEMP TABLE t (id int)")
        connection.commit()
        connection.execute("INSERT INTO t VALUES (1)")
        connection.rollback()
    assert connection.execute("SELECT * FROM t").fetchall() == []


def test_a_block_within_a_block_ends_when_it_is_answered(connection: onetrip.Connection) -> None:
    with connection.pipeline() as outer:
        first = outer.execute("SELECT 1")
        with connection.pipeline("continue") as inner:
            failed = inner.execute("SELECT 1/0")
            second = connection.execute("SELECT 2")
        with pytest.raises(errors.DivisionByZero):
            failed.result()
        assert (first.fetchone(), second.fetchone()) == ((1,), (2,))
        third = connection.execute("SELECT 3")
    assert third.fetchone() == (3,)


def test_what_cannot_join_says_so(connection: onetrip.Connection) -> None:
    with connection.pipeline():
        for refused in (
            lambda: connection.create_large_object(b"x"),
            lambda: connection.cursor().executemany("INSERT INTO t VALUES (%s)", [(1,)], by="copy"),
        ):
            with pytest.raises(onetrip.ProgrammingError, match="pipeline"):
                refused()
        with pytest.raises(onetrip.NotSupportedError, match="pipeline"):
            connection.cursor().copy("COPY t FROM STDIN")
        with connection.cursor("named") as named:
            named.execute("SELECT generate_series(1, 3)")
            assert named.fetchall() == [(1,), (2,), (3,)]


def test_statements_of_tasks_within_a_block_join_it(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:
            await connection.execute("CREATE TEMP TABLE t (id int)")
            before = connection.trips
            async with connection.pipeline() as pipeline:
                by_block = await pipeline.execute("SELECT 1")
                by_connection = await connection.execute("SELECT generate_series(1, 3)")
                # A task of its own, as `wait_for` makes one before Python 3.12.
                by_task = await asyncio.ensure_future(connection.execute("SELECT 5"))
                many = connection.cursor()
                await many.executemany("INSERT INTO t VALUES (%s)", [(8,), (9,)])
                assert (many.rowcount, by_task.description) == (-1, None)
            assert connection.trips - before == 1
            assert (by_block.fetchone(), await by_connection.fetchall()) == ((1,), [(1,), (2,), (3,)])
            assert (await by_task.fetchone(), many.rowcount) == ((5,), 2)
            assert [column.name for column in by_task.description or ()] == ["?column?"]

    run(main())


def test_tasks_within_a_block_wait_in_turn_for_their_rows(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:

            async def one(number: int) -> Any:
                return await (await connection.execute("SELECT %s", (number,))).fetchone()

            async with connection.pipeline() as pipeline:
                assert await asyncio.gather(*map(one, range(50))) == [(number,) for number in range(50)]
                await pipeline.process()
                async with connection.pipeline("continue") as inner:
                    failed = await inner.execute("SELECT 1/0")
                    second = await connection.execute("SELECT 2")
                with pytest.raises(errors.DivisionByZero):
                    failed.result()
                assert await second.fetchone() == (2,)
                await connection.commit()

    run(main())


def test_what_cannot_join_says_so_instead_of_waiting_for_itself(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:
            async with connection.pipeline():
                with pytest.raises(onetrip.NotSupportedError, match="pipeline"):
                    async with connection.cursor().copy("COPY (SELECT 1) TO STDOUT"):
                        pass
                with pytest.raises(onetrip.ProgrammingError, match="pipeline"):
                    await connection.create_large_object(b"x" * 10)
                    await connection.large_objects([1])
            async with connection.cursor().copy("COPY (SELECT 1) TO STDOUT") as copy:
                with pytest.raises(onetrip.ProgrammingError, match="COPY"):
                    await connection.execute("SELECT 1")
                assert [piece async for piece in copy] == [b"1\n"]
            assert await (await connection.execute("SELECT 2")).fetchone() == (2,)

    run(main())


def test_a_connection_that_is_closed_within_its_block_lets_others_go_on(server: dict[str, Any]) -> None:
    async def main() -> None:
        connection = await aio.connect(**server)
        with pytest.raises(onetrip.Error):
            async with connection.pipeline() as pipeline:
                await pipeline.execute("SELECT pg_sleep(30)")
                await connection.close()
        with pytest.raises(onetrip.InterfaceError):
            await connection.execute("SELECT 1")

    run(main())
