"""Whatever waits can be interrupted: by the task's or the thread's cancellation, a deadline, a signal or another thread.
The connection is whole afterwards, and nobody gets another's answer."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

import onetrip
import pytest
import uvloop
from onetrip import aio, errors

LONG = "SELECT pg_sleep(60)"
# What sleeps when a transaction ends.
DEFERRED = """
CREATE OR REPLACE FUNCTION sleeps() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$;
CREATE TEMP TABLE slow (id int);
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION sleeps()
"""

Wait = Callable[[onetrip.Connection], Any]
AsyncWait = Callable[[aio.AsyncConnection], Awaitable[Any]]


@pytest.fixture(scope="module")
def watcher(server: dict[str, Any]) -> Iterator[onetrip.Connection]:
    with onetrip.connect(**server, autocommit=True) as connection:
        yield connection


def sleeps(watcher: onetrip.Connection, pid: int | None) -> bool:
    """Whether a backend has begun to sleep."""
    found = watcher.execute("SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone()
    return bool(found and found[0])


# In threads.


def statement(connection: onetrip.Connection) -> None:
    connection.execute(LONG)


def many(connection: onetrip.Connection) -> None:
    connection.cursor().executemany("SELECT pg_sleep(%s)", [(60,), (60,)])


def stream(connection: onetrip.Connection) -> None:
    with contextlib.closing(connection.cursor().stream(LONG)) as rows:
        next(rows)


def named_cursor(connection: onetrip.Connection) -> None:
    connection.cursor("named").execute("SELECT 1 FROM pg_sleep(60)").fetchall()


def block(connection: onetrip.Connection) -> None:
    with connection.pipeline() as pipeline:
        pipeline.execute(LONG)


def block_that_waits(connection: onetrip.Connection) -> None:
    with connection.pipeline() as pipeline:
        pipeline.process(pipeline.execute(LONG))


def transaction(connection: onetrip.Connection) -> None:
    with connection.transaction():
        connection.execute(LONG)


def commit(connection: onetrip.Connection) -> None:
    connection.execute(DEFERRED)
    connection.execute("INSERT INTO slow VALUES (1)")
    connection.commit()


def copy_out(connection: onetrip.Connection) -> None:
    with connection.cursor().copy("COPY (SELECT pg_sleep(60)) TO STDOUT") as copy:
        copy.read()


def copy_in(connection: onetrip.Connection) -> None:
    connection.execute(DEFERRED)
    connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
    with connection.cursor().copy("COPY slow FROM STDIN") as copy:
        copy.write("1\n")


WAITS: list[Wait] = [
    statement, many, stream, named_cursor, block, block_that_waits, transaction, commit, copy_out, copy_in,
]  # fmt: skip


@pytest.mark.parametrize("how", ["cancel", "signal", "timeout"])
@pytest.mark.parametrize("waits", WAITS, ids=lambda waits: waits.__name__)
def test_a_wait_is_interrupted_and_the_connection_is_whole(
    server: dict[str, Any], watcher: onetrip.Connection, waits: Wait, how: str
) -> None:
    connection = onetrip.connect(**server)
    pid = connection.backend_pid
    done = threading.Event()

    def interrupt() -> None:
        while not done.is_set() and not sleeps(watcher, pid):
            time.sleep(0.01)
        while not done.wait(0.01):
            if how == "cancel":
                connection.cancel()
            else:
                os.kill(os.getpid(), signal.SIGINT)
            if done.wait(5):
                return

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    other = threading.Thread(target=interrupt)
    if how == "timeout":
        connection.set_timeout(0.5)
    else:
        other.start()
    try:
        with pytest.raises(KeyboardInterrupt if how == "signal" else errors.QueryCanceled):
            try:
                waits(connection)
            finally:
                done.set()
    finally:
        done.set()
        if how != "timeout":
            other.join()
        signal.signal(signal.SIGINT, before)
    connection.set_timeout(None)
    assert not connection.closed
    connection.rollback()
    assert connection.execute("SELECT 'mine'").fetchone() == ("mine",)
    with connection.pipeline() as pipeline:
        mine = pipeline.execute("SELECT 'too'")
    assert mine.fetchall() == [("too",)]
    connection.close()


@pytest.fixture
def deaf() -> Iterator[int]:
    """The port of one who listens, and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield listener.getsockname()[1]


def test_waits_without_a_statement_end_by_their_deadlines(server: dict[str, Any], deaf: int) -> None:
    silent: dict[str, Any] = {**server, "port": deaf, "connect_timeout": 1}
    with pytest.raises(errors.ConnectionTimeout):
        onetrip.connect(**silent)
    with pytest.raises(errors.ConnectionTimeout):
        asyncio.run(aio.connect(**silent))
    with onetrip.connect(**server, autocommit=True) as connection:
        assert list(connection.notifies(0.05)) == []
    with onetrip.ConnectionPool(kwargs=server, min_size=0, max_size=1) as pool, pool.connection():
        with pytest.raises(onetrip.PoolTimeout):
            pool.getconn(timeout=0.05)
    with onetrip.Pool(**server, max_size=1) as plain, plain.connection():
        with pytest.raises(onetrip.OperationalError):
            plain.take(timeout=0.05)


# In tasks.


async def a_statement(connection: aio.AsyncConnection) -> None:
    await connection.execute(LONG)


async def a_many(connection: aio.AsyncConnection) -> None:
    await connection.cursor().executemany("SELECT pg_sleep(%s)", [(60,), (60,)])


async def a_stream(connection: aio.AsyncConnection) -> None:
    async with contextlib.aclosing(connection.cursor().stream(LONG)) as rows:
        async for _ in rows:
            pass


async def a_named_cursor(connection: aio.AsyncConnection) -> None:
    await (await connection.cursor("named").execute("SELECT 1 FROM pg_sleep(60)")).fetchall()


async def a_block(connection: aio.AsyncConnection) -> None:
    async with connection.pipeline() as pipeline:
        await pipeline.execute(LONG)


async def a_block_that_waits(connection: aio.AsyncConnection) -> None:
    async with connection.pipeline() as pipeline:
        await pipeline.process(await pipeline.execute(LONG))


async def a_transaction(connection: aio.AsyncConnection) -> None:
    async with connection.transaction():
        await connection.execute(LONG)


async def a_commit(connection: aio.AsyncConnection) -> None:
    await connection.execute(DEFERRED)
    await connection.execute("INSERT INTO slow VALUES (1)")
    await connection.commit()


async def a_copy_out(connection: aio.AsyncConnection) -> None:
    async with connection.cursor().copy("COPY (SELECT pg_sleep(60)) TO STDOUT") as copy:
        await copy.read()


async def a_copy_in(connection: aio.AsyncConnection) -> None:
    await connection.execute(DEFERRED)
    await connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
    async with connection.cursor().copy("COPY slow FROM STDIN") as copy:
        await copy.write("1\n")


ASYNC_WAITS: list[AsyncWait] = [
    a_statement, a_many, a_stream, a_named_cursor, a_block, a_block_that_waits, a_transaction, a_commit, a_copy_out,
    a_copy_in,
]  # fmt: skip

Way = Callable[[Coroutine[Any, Any, None], "asyncio.Event"], Awaitable[None]]


async def by_cancel(work: Coroutine[Any, Any, None], begun: asyncio.Event) -> None:
    task = asyncio.ensure_future(work)
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def by_wait_for(work: Coroutine[Any, Any, None], begun: asyncio.Event) -> None:
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(work, 0.5)


async def by_timeout(work: Coroutine[Any, Any, None], begun: asyncio.Event) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(60) as scope:
            waiting = asyncio.ensure_future(begun.wait())
            waiting.add_done_callback(lambda _: scope.reschedule(0))
            await work


async def by_group(work: Coroutine[Any, Any, None], begun: asyncio.Event) -> None:
    async def fails() -> None:
        await begun.wait()
        raise ZeroDivisionError

    with pytest.raises(BaseException) as caught:
        async with asyncio.TaskGroup() as group:
            group.create_task(work)
            group.create_task(fails())
    assert [type(one) for one in caught.value.exceptions] == [ZeroDivisionError]  # type: ignore[attr-defined]


WAYS: list[Way] = [by_cancel, by_wait_for, by_timeout, by_group]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("waits", ASYNC_WAITS, ids=lambda waits: waits.__name__)
def test_an_await_is_cancelled_and_the_connection_is_whole(
    server: dict[str, Any], watcher: onetrip.Connection, waits: AsyncWait, way: Way, run: Any
) -> None:
    if way in (by_timeout, by_group) and sys.version_info < (3, 11):
        pytest.skip("Python has it since 3.11")

    async def main() -> None:
        async with await aio.connect(**server) as connection:
            begun = asyncio.Event()

            async def watch() -> None:
                while not sleeps(watcher, connection.backend_pid):
                    await asyncio.sleep(0.01)
                begun.set()

            async def work() -> None:
                await waits(connection)

            watching = asyncio.ensure_future(watch())
            try:
                await way(work(), begun)
            finally:
                watching.cancel()
            assert not connection.closed
            await connection.rollback()
            assert await (await connection.execute("SELECT 'mine'")).fetchone() == ("mine",)
            async with connection.pipeline() as pipeline:
                mine = await pipeline.execute("SELECT 'too'")
            assert mine.fetchall() == [("too",)]

    run(asyncio.wait_for(main(), 50))


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_awaits_without_a_statement_are_cancelled(server: dict[str, Any], deaf: int, run: Any) -> None:
    async def ended(work: Any) -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(work, 0.05)

    async def main() -> None:
        await ended(aio.connect(**{**server, "port": deaf}))
        async with await aio.connect(**server, autocommit=True) as connection:
            await ended(connection.notification())
            async with connection.cursor().copy("COPY (SELECT 1) TO STDOUT"):
                # Another task waits for the block's end; what this one has begun is a part of it.
                await ended(contextvars.Context().run(asyncio.ensure_future, connection.execute("SELECT 1")))
            assert await (await connection.execute("SELECT 1")).fetchone() == (1,)
        async with aio.AsyncPool(**server, max_size=1) as plain:
            async with plain.connection():
                await ended(plain.take())
            async with plain.connection() as again:
                await again.execute("SELECT 1")
        async with aio.AsyncConnectionPool(kwargs=server, min_size=1, max_size=1) as pool:
            async with pool.connection():
                await ended(pool.getconn())
            async with pool.connection() as again:
                await again.execute("SELECT 1")
            assert pool.get_stats()["requests_waiting"] == 0

    run(asyncio.wait_for(main(), 50))
