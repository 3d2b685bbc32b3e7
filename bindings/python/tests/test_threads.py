"""Threads that share a connection, and pools that keep none."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import onetrip
import pytest

THREADS, TURNS = 6, 40


def at_once(calls: list[Callable[[], None]]) -> None:
    """Calls in a thread each, and raises what one of them has raised."""
    failed: list[BaseException] = []
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], None]) -> None:
        try:
            start.wait(30)
            call()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "a thread waits forever"
    if failed:
        raise failed[0]


def test_each_thread_has_its_own_answers(server: dict[str, Any]) -> None:
    with onetrip.connect(**server, autocommit=True) as connection:
        connection.execute("CREATE TEMP TABLE t (thread int, turn int)")

        def statements(me: int) -> None:
            for turn in range(TURNS):
                assert connection.execute("SELECT %s, %s", (me, turn)).fetchall() == [(me, turn)]

        def many(me: int) -> None:
            for turn in range(TURNS):
                connection.executemany("INSERT INTO t VALUES (%s, %s)", [(me, turn)] * 3)

        def copies(me: int) -> None:
            for turn in range(TURNS):
                with connection.cursor().copy("COPY t FROM STDIN") as copy:
                    copy.write_row((me, turn))
                    copy.write_row((me, turn))
                with connection.cursor().copy("COPY (SELECT %s, generate_series(1, 3)) TO STDOUT", (me,)) as copy:
                    assert list(copy.rows()) == [(str(me), str(row)) for row in (1, 2, 3)]

        def streams(me: int) -> None:
            for turn in range(TURNS):
                rows = list(connection.cursor().stream("SELECT %s, generate_series(1, %s)", (me, turn)))
                assert rows == [(me, row) for row in range(1, turn + 1)]
                if turn % 2:
                    left = connection.cursor().stream("SELECT generate_series(1, 10000)")
                    assert next(left) == (1,)
                    left.close()

        def named(me: int) -> None:
            for turn in range(TURNS):
                with connection.cursor(f"n{me}", withhold=True) as cursor:
                    cursor.execute("SELECT %s, generate_series(1, %s)", (me, turn))
                    assert cursor.fetchall() == [(me, row) for row in range(1, turn + 1)]

        def looks(me: int) -> None:
            for _ in range(TURNS):
                assert not connection.closed and connection.info.backend_pid and repr(connection)

        kinds = (statements, many, copies, streams, looks, named)
        at_once([lambda me=me: kinds[me % len(kinds)](me) for me in range(2 * len(kinds))])
        found = dict(connection.execute("SELECT thread, count(*) FROM t GROUP BY thread").fetchall())
        assert found == {1: 3 * TURNS, 7: 3 * TURNS, 2: 2 * TURNS, 8: 2 * TURNS}


def test_what_a_connection_is_told_of_waits_for_no_other_threads_statement(server: dict[str, Any]) -> None:
    with (
        onetrip.connect(**server, autocommit=True) as connection,
        onetrip.connect(**server, autocommit=True) as other,
    ):
        connection.execute("SET TimeZone TO 'Europe/Vienna'")
        connection.execute("SET client_encoding TO 'LATIN1'")
        other.execute("SELECT pg_advisory_lock(24)")
        waits = threading.Thread(target=connection.execute, args=("SELECT pg_advisory_lock(24)",))
        waits.start()
        running = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
        while other.execute(running, (connection.info.backend_pid,)).fetchone() is None:
            time.sleep(0.01)
        info = connection.info
        read: list[object] = []

        def reads() -> None:
            read.extend(
                [info.parameter_status("TimeZone"), str(info.timezone), info.encoding, info.server_version // 10_000]
            )

        reader = threading.Thread(target=reads)
        reader.start()
        reader.join(30)
        is_there = not reader.is_alive()
        other.execute("SELECT pg_advisory_unlock(24)")
        waits.join(30)
        assert is_there, "it waits for the statement"
        assert read[:3] == ["Europe/Vienna", "Europe/Vienna", "iso8859-1"] and read[3] in (15, 18)
        connection.execute("SET TimeZone TO 'UTC'")
        assert info.parameter_status("TimeZone") == "UTC"
    with pytest.raises(onetrip.OperationalError):
        info.parameter_status("TimeZone")


def test_a_pool_without_connections_makes_one_for_each_use(server: dict[str, Any]) -> None:
    pids: list[int | None] = []
    with onetrip.NullConnectionPool(kwargs=server, max_size=2) as pool:
        for _ in range(2):
            with pool.connection() as connection:
                pids.append(connection.info.backend_pid)
            assert connection.closed and pool.get_stats().get("pool_available", 0) == 0
        with pool.connection(), pool.connection(), pytest.raises(onetrip.PoolTimeout):
            pool.getconn(timeout=0.1)
    assert len(set(pids)) == 2
    with pytest.raises(onetrip.PoolClosed):
        pool.getconn()
    with pytest.raises(ValueError, match="min_size"):
        onetrip.NullConnectionPool(kwargs=server, min_size=1, open=False)


def test_threads_get_in_turn_what_such_a_pool_makes(server: dict[str, Any]) -> None:
    used: list[int] = []
    lock, count = threading.Lock(), [0, 0]

    def work(pool: Any, me: int) -> None:
        for turn in range(5):
            with pool.connection(timeout=60) as connection:
                with lock:
                    count[0] += 1
                    count[1] = max(count)
                assert connection.execute("SELECT %s", (me * turn,)).fetchone() == (me * turn,)
                used.append(me)
                with lock:
                    count[0] -= 1

    with onetrip.NullConnectionPool(kwargs=server, max_size=2) as pool:
        at_once([lambda me=me: work(pool, me) for me in range(THREADS)])
    assert len(used) == 5 * THREADS and count[1] <= 2


def test_tasks_get_in_turn_what_such_a_pool_makes(server: dict[str, Any]) -> None:
    async def main() -> None:
        pids: list[int | None] = []

        async def work(me: int) -> None:
            for turn in range(3):
                async with pool.connection(timeout=60) as connection:
                    pids.append(connection.info.backend_pid)
                    assert await (await connection.execute("SELECT %s", (me * turn,))).fetchone() == (me * turn,)

        async with onetrip.AsyncNullConnectionPool(kwargs=server, max_size=2, open=False) as pool:
            await asyncio.gather(*(work(me) for me in range(THREADS)))
            assert len(pids) == 3 * THREADS
            async with pool.connection(), pool.connection():
                with pytest.raises(onetrip.PoolTimeout):
                    await pool.getconn(timeout=0.1)
        with pytest.raises(onetrip.PoolClosed):
            await pool.getconn()

    asyncio.run(main())
