"""The connection for event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import onetrip
import pytest
import uvloop
from onetrip import aio, errors

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a coroutine in each kind of loop."""
    return asyncio.run if request.param == "asyncio" else uvloop.run


def test_statements_run_and_rows_come(server: dict[str, Any], run: Run) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:
            cursor = await connection.execute("SELECT %s, generate_series(1, 3)", ("a",))
            assert await cursor.fetchone() == ("a", 1)
            assert [row async for row in cursor] == [("a", 2), ("a", 3)]
            assert connection.transaction_status == onetrip.TransactionStatus.INTRANS
            with pytest.raises(errors.DivisionByZero):
                await connection.execute("SELECT 1/0")
            await connection.rollback()
            several = await connection.execute("SELECT 1; SELECT 2")
            assert (await several.fetchall(), several.nextset(), await several.fetchall()) == (
                [(1,)],
                True,
                [(2,)],
            )
        assert connection.closed

    run(main())


def test_large_results_and_parameters_pass(server: dict[str, Any], run: Run) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:
            data = bytes(range(256)) * 8192
            assert await (await connection.execute("SELECT %s", (data,))).fetchone() == (data,)
            rows = await (await connection.execute("SELECT generate_series(1, 50000)")).fetchall()
            assert rows[-1] == (50_000,)

    run(main())


def test_pipelines_as_in_the_blocking_connection(server: dict[str, Any], run: Run) -> None:
    async def main() -> None:
        async with await aio.connect(**server, autocommit=True) as connection:
            await connection.execute("CREATE TEMP TABLE t (id int)")
            with pytest.raises(errors.DivisionByZero):
                async with connection.pipeline() as pipeline:
                    first = await pipeline.execute("INSERT INTO t VALUES (1)")
                    await pipeline.execute("SELECT 1/0")
            with pytest.raises(onetrip.PipelineUndone):
                first.result()
            async with connection.pipeline("continue") as pipeline:
                good = await pipeline.execute("SELECT 7")
                await pipeline.process(good)
                assert good.fetchone() == (7,)
                await pipeline.execute("SELECT 1/0")
            cursor = connection.cursor()
            await cursor.executemany("INSERT INTO t VALUES (%s)", [(id,) for id in range(3000)])
            assert cursor.rowcount == 3000

    run(main())


def test_tasks_share_a_connection_and_a_cancelled_one_leaves_it_whole(server: dict[str, Any], run: Run) -> None:
    async def main() -> None:
        async with await aio.connect(**server, autocommit=True) as connection:
            cursors = await asyncio.gather(*[connection.execute("SELECT %s", (id,)) for id in range(20)])
            assert [await cursor.fetchone() for cursor in cursors] == [(id,) for id in range(20)]
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(connection.execute("SELECT pg_sleep(30)"), 0.2)
            assert await (await connection.execute("SELECT 1")).fetchone() == (1,)

    run(main())


def test_nobody_there_is_an_operational_error(server: dict[str, Any], run: Run) -> None:
    async def main() -> None:
        with pytest.raises(onetrip.OperationalError):
            await aio.connect(**{**server, "port": 1})
        with pytest.raises(onetrip.OperationalError) as caught:
            await aio.connect(**{**server, "password": "wrong"})
        assert caught.value.sqlstate == "28P01"
        with pytest.raises(onetrip.NotSupportedError):
            await aio.connect(**server, target_session_attrs="primary")

    run(main())
