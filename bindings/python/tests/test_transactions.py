"""Blocks of `transaction()`, of both kinds of connections."""

from __future__ import annotations

import asyncio
from typing import Any

import onetrip
import pytest
from onetrip import TransactionStatus, aio, errors

IDS = "SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM t"


@pytest.fixture
def filled(server: dict[str, Any]) -> Any:
    """A connection that autocommits, with a table."""
    connection = onetrip.connect(**server, autocommit=True)
    connection.execute("CREATE TEMP TABLE t (id int PRIMARY KEY)")
    yield connection
    connection.close()


def ids(connection: onetrip.Connection) -> list[int]:
    return connection.execute(IDS).fetchall()[0][0]


def test_begin_travels_with_the_first_statement_of_a_block(filled: onetrip.Connection) -> None:
    before = filled.trips
    with filled.transaction() as transaction:
        assert filled.trips == before
        assert filled.transaction_status == TransactionStatus.INTRANS
        filled.execute("INSERT INTO t VALUES (1)")
        filled.execute("INSERT INTO t VALUES (2)")
    assert filled.trips - before == 3, "two statements and COMMIT"
    assert transaction.status == transaction.Status.COMMITTED
    with filled.transaction():
        pass
    assert filled.trips - before == 3, "an empty one costs nothing"
    assert ids(filled) == [1, 2]


def test_what_raises_is_undone_and_only_that(filled: onetrip.Connection) -> None:
    with filled.transaction():
        with pytest.raises(errors.UniqueViolation), filled.transaction():
            filled.execute("INSERT INTO t VALUES (1)")
            filled.execute("INSERT INTO t VALUES (1)")
        with filled.transaction("mine") as inner:
            assert inner.savepoint_name == "mine"
            filled.execute("INSERT INTO t VALUES (2)")
    assert ids(filled) == [2]
    with pytest.raises(ZeroDivisionError), filled.transaction() as failed:
        filled.execute("INSERT INTO t VALUES (3)")
        raise ZeroDivisionError
    assert failed.status == failed.Status.ROLLED_BACK_WITH_ERROR
    assert ids(filled) == [2]


def test_rollback_leaves_a_block_without_an_error(filled: onetrip.Connection) -> None:
    with filled.transaction() as outer:
        filled.execute("INSERT INTO t VALUES (1)")
        with filled.transaction():
            filled.execute("INSERT INTO t VALUES (2)")
            raise onetrip.Rollback
        with filled.transaction(force_rollback=True) as forced:
            filled.execute("INSERT INTO t VALUES (3)")
        assert forced.status == forced.Status.ROLLED_BACK_EXPLICITLY
        assert ids(filled) == [1]
        with filled.transaction():
            raise onetrip.Rollback(outer)
    assert ids(filled) == []


def test_a_transaction_that_is_open_stays_open(connection: onetrip.Connection) -> None:
    connection.execute("CREATE TEMP TABLE t (id int)")
    with connection.transaction() as transaction:
        assert transaction.savepoint_name
        connection.execute("INSERT INTO t VALUES (1)")
    assert connection.transaction_status == TransactionStatus.INTRANS
    connection.rollback()
    with connection.transaction():
        connection.execute("SELECT 1")
    assert connection.transaction_status == TransactionStatus.IDLE


def test_calls_that_would_break_a_block_are_refused(filled: onetrip.Connection) -> None:
    with filled.transaction() as transaction:
        for refused in (filled.commit, filled.rollback):
            with pytest.raises(onetrip.ProgrammingError, match="transaction"):
                refused()
        with pytest.raises(onetrip.ProgrammingError, match="autocommit"):
            filled.autocommit = False
    with pytest.raises(TypeError, match="once"), transaction:
        pass
    outer, inner = filled.transaction(), filled.transaction()
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(onetrip.ProgrammingError, match="within"):
        outer.__exit__(None, None, None)
    with pytest.raises(onetrip.ProgrammingError, match="within"):
        inner.__exit__(ValueError, ValueError(), None)
    filled.rollback()
    assert filled.autocommit and filled.transaction_status == TransactionStatus.IDLE


def test_a_block_that_cannot_be_committed_raises(filled: onetrip.Connection) -> None:
    filled.execute("CREATE TEMP TABLE u (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(errors.UniqueViolation), filled.transaction():
        filled.execute("INSERT INTO u VALUES (1), (1)")
    assert filled.transaction_status == TransactionStatus.IDLE
    with pytest.raises(onetrip.OperationalError), filled.transaction():
        with pytest.raises(errors.DivisionByZero):
            filled.execute("SELECT 1/0")
    assert filled.transaction_status == TransactionStatus.IDLE
    with filled.transaction():
        filled.close()


def test_in_a_pipeline_a_block_is_a_part_of_it(filled: onetrip.Connection) -> None:
    before = filled.trips
    with filled.pipeline():
        with filled.transaction():
            filled.execute("INSERT INTO t VALUES (1)")
            filled.execute("INSERT INTO t VALUES (2)")
        assert filled.trips - before == 1
        with filled.transaction():
            filled.execute("INSERT INTO t VALUES (3)")
            with filled.transaction():
                filled.execute("INSERT INTO t VALUES (4)")
                raise onetrip.Rollback
        with pytest.raises(errors.UniqueViolation), filled.transaction():
            filled.execute("INSERT INTO t VALUES (5)")
            filled.execute("INSERT INTO t VALUES (1)")
        last = filled.execute("INSERT INTO t VALUES (6)")
    assert last.rowcount == 1
    assert filled.transaction_status == TransactionStatus.IDLE
    assert ids(filled) == [1, 2, 3, 6]


def test_the_same_with_asyncio(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server, autocommit=True) as connection:

            async def add(id: int) -> None:
                await connection.execute("INSERT INTO t VALUES (%s)", (id,))

            async def ids() -> Any:
                return (await (await connection.execute(IDS)).fetchall())[0][0]

            await connection.execute("CREATE TEMP TABLE t (id int PRIMARY KEY)")
            before = connection.trips
            async with connection.transaction() as outer:
                assert connection.transaction_status == TransactionStatus.INTRANS
                await add(1)
                async with connection.transaction():
                    await add(2)
                    raise onetrip.Rollback
                with pytest.raises(errors.UniqueViolation):
                    async with connection.transaction():
                        await add(1)
                with pytest.raises(onetrip.ProgrammingError):
                    await connection.commit()
            # Each inner block is SAVEPOINT, a statement, and one trip to undo it.
            assert connection.trips - before == 8 and outer.status == outer.Status.COMMITTED
            async with connection.transaction(force_rollback=True):
                await add(3)
            assert await ids() == [1]
            async with connection.pipeline():
                async with connection.transaction():
                    await add(4)
                with pytest.raises(errors.UniqueViolation):
                    async with connection.transaction():
                        await add(5)
                        await add(1)
                async with connection.transaction():
                    await add(6)
            assert await ids() == [1, 4, 6]
            task = asyncio.ensure_future(hold(connection))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await ids() == [1, 4, 6]
            assert connection.transaction_status == TransactionStatus.IDLE

    async def hold(connection: aio.AsyncConnection) -> None:
        async with connection.transaction():
            await connection.execute("INSERT INTO t VALUES (7)")
            await connection.execute("SELECT pg_sleep(60)")

    asyncio.run(main())
