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


def test_a_statement_that_is_refused_before_it_leaves_begins_nothing(server: dict[str, Any], run: Run) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:
            too_many = "SELECT " + ", ".join(["%s"] * 70_000)
            for statement, values in ((too_many, (0,) * 70_000), ("COPY t FROM STDIN", ())):
                with pytest.raises(onetrip.Error) as caught:
                    await connection.execute(statement, values)
                assert caught.value.retry == "safe"
                assert connection.transaction_status == onetrip.TransactionStatus.IDLE
                async with connection.pipeline() as pipeline:
                    await pipeline.execute("SELECT 1")
                    await pipeline.rollback()
                assert await (await connection.execute("SELECT 'mine'")).fetchall() == [("mine",)]
                await connection.rollback()

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

    run(main())


def test_the_server_that_is_wanted_is_taken(server: dict[str, Any], run: Run) -> None:
    read_only = "-c default_transaction_read_only=on"

    async def main() -> None:
        for wanted, options in (
            ("any", read_only),
            ("primary", ""),
            ("read-write", ""),
            ("read-only", read_only),
            ("prefer-standby", ""),
        ):
            async with await aio.connect(**server, target_session_attrs=wanted, options=options) as connection:
                assert await (await connection.execute("SELECT 1")).fetchone() == (1,)
        several = {**server, "host": f"{server['host']},{server['host']}", "port": f"1,{server['port']}"}
        for wanted, options in (("standby", ""), ("read-write", read_only), ("read-only", "")):
            with pytest.raises(onetrip.OperationalError, match=f"is not {wanted}"):
                await aio.connect(**several, target_session_attrs=wanted, options=options)
        async with await aio.connect(**several, target_session_attrs="primary") as connection:
            assert not connection.closed

    run(main())


def test_an_operation_may_differ_from_its_block(server: dict[str, Any], run: Run) -> None:
    async def main() -> None:
        async with await aio.connect(**server, autocommit=True) as connection:
            await connection.execute("CREATE TEMP TABLE t (id int)")
            with pytest.raises(errors.DivisionByZero):
                async with connection.pipeline() as pipeline:
                    kept = await pipeline.execute("INSERT INTO t VALUES (1)", on_error="continue")
                    shrugged = await pipeline.execute("SELECT 1/0", on_error="continue")
                    undone = await pipeline.execute("INSERT INTO t VALUES (2)")
                    await pipeline.call("pg_backend_pid")
                    await pipeline.execute("SELECT 2/0")
                    late = await pipeline.execute("INSERT INTO t VALUES (3)", on_error="continue")
            assert kept.rowcount == 1
            with pytest.raises(errors.DivisionByZero):
                shrugged.result()
            with pytest.raises(onetrip.PipelineUndone):
                undone.result()
            with pytest.raises(onetrip.PipelineAborted):
                late.result()
            assert await (await connection.execute("SELECT id FROM t")).fetchall() == [(1,)]

    run(main())


def test_what_the_server_says_is_heard(server: dict[str, Any], run: Run) -> None:
    async def main() -> None:
        async with await aio.connect(**server, autocommit=True) as connection:
            await connection.execute("DO $$ BEGIN RAISE NOTICE 'hello'; RAISE NOTICE 'again'; END $$")
            assert connection.lines() == ["hello", "again"]
            await connection.execute("DO $$ BEGIN RAISE NOTICE 'hello'; END $$")
            assert [notice.message_primary for notice in connection.notices()] == ["hello"]
            assert await connection.collect_output() is False
            await connection.execute("LISTEN here")
            assert await connection.notification(0.05) is None
            waiting = asyncio.ensure_future(connection.notification())
            async with await aio.connect(**server, autocommit=True) as other:
                await other.execute("NOTIFY here, 'x'")
            heard = await asyncio.wait_for(waiting, 20)
            assert heard is not None and (heard.channel, heard.payload) == ("here", "x")

    run(main())


def test_a_connection_of_another_loop_says_so(server: dict[str, Any]) -> None:
    async def opened() -> aio.AsyncConnection:
        return await aio.connect(**server)

    async def used() -> None:
        with pytest.raises(errors.InterfaceError, match="another event loop"):
            await connection.execute("SELECT 1")
        with pytest.raises(errors.InterfaceError, match="another event loop"):
            async with connection.pipeline():
                await connection.execute("SELECT 1")

    first = asyncio.new_event_loop()
    connection = first.run_until_complete(opened())
    asyncio.run(used())
    first.run_until_complete(connection.close())
    first.close()
